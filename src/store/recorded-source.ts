import { ManyworldsError } from '../errors.ts'
import type { ReadyTask, TaskSource } from '../executor/source.ts'
import type { TaskResponse } from '../task.ts'
import type { GroupCommit } from './group-commit.ts'
import type { Recording } from './recording.ts'
import type { RunHistory } from './run-history.ts'

/** How many tasks of an array are recorded ahead of their turn per commit. */
const AHEAD = 1000

interface Options {
  readonly runId: string
  readonly recording: Recording
  readonly commit: GroupCommit
  readonly history: RunHistory | undefined
  /** sequenceDependent: each task gets the answer of the previous task. */
  readonly sequence: boolean
  /** All tasks, if they were given as an array. */
  readonly all: readonly ReadyTask[] | undefined
  /** Called when the source has ended, with the number of tasks. */
  readonly ended: (tasks: number) => void
}

/**
 * Records tasks as they are read, and marks those that an earlier session has finished as restored. The tasks of an array
 * are compared with the recorded ones before anything starts, and recorded in the background, so that a later session
 * notices any change.
 */
export class RecordedSource implements TaskSource {
  readonly #inner: TaskSource
  readonly #options: Options
  /** Tasks of the array that are not recorded yet. */
  readonly #pending: (ReadyTask | undefined)[]
  readonly #records: number[] = []
  #written = 0
  #read = 0
  #ended = false

  constructor(inner: TaskSource, options: Options) {
    this.#inner = inner
    this.#options = options
    this.#pending = options.all === undefined ? [] : [...options.all]
    if (options.all) this.#numberAll(options.all)
    if (this.#pending.length > 0) options.commit.fill = () => this.#writeUpTo(this.#written + AHEAD)
  }

  open(wake: () => void, room: () => number): void {
    this.#inner.open(wake, room)
  }

  pull(): ReadyTask | 'wait' | 'end' {
    const item = this.#inner.pull()
    if (item === 'end' && !this.#ended) {
      this.#ended = true
      this.#options.ended(this.#read)
    }
    if (typeof item === 'string') return item
    this.#read++
    return this.#matched(item)
  }

  /** Adds the outcome that earlier sessions recorded for the task. */
  #matched(item: ReadyTask): ReadyTask {
    const { history, recording } = this.#options
    const known = history?.task(item.id, recording.contentOf(item), this.#placeOf(item))
    if (known === undefined) return { ...item, record: this.#record(item) }
    const { response, record, attempts } = known
    if (response && (known.final || (item.skip !== undefined && response.error?.code === 'DEPENDENCY_FAILED')))
      return { ...item, record, restored: response, restoredBytes: known.bytes }
    if (known.isOther) recording.task(item, record)
    if (response) recording.again(record, known.fresh)
    if (known.startedBefore && item.task.rerun === 'never')
      return { ...item, record, attempts, crashed: known.startedBefore }
    return { ...item, record, attempts }
  }

  settled(index: number, response: TaskResponse): void {
    this.#inner.settled?.(index, response)
  }

  /** Returns the tasks that were not read. Those that an earlier session finished are restored; the others are not recorded. */
  close(): ReadyTask[] {
    return this.#inner.close().map((item) => this.#restored(item) ?? item)
  }

  #restored(item: ReadyTask): ReadyTask | undefined {
    const { history, recording } = this.#options
    if (!history?.isOpen) return undefined
    try {
      const known = history.task(item.id, recording.contentOf(item), this.#placeOf(item))
      if (!known?.final) return undefined
      return { ...item, record: known.record, restored: known.response!, restoredBytes: known.bytes }
    } catch {
      // The run is already ending for another reason.
      return undefined
    }
  }

  #placeOf(item: ReadyTask): number | undefined {
    return this.#options.sequence ? item.index : undefined
  }

  #record(item: ReadyTask): number {
    const { recording, all } = this.#options
    if (all) {
      this.#writeUpTo(item.index + 1)
      return this.#records[item.index]!
    }
    const record = recording.reserve(1)
    recording.task(item, record)
    return record
  }

  #writeUpTo(end: number): void {
    for (const last = Math.min(end, this.#pending.length); this.#written < last; this.#written++) {
      const item = this.#pending[this.#written]
      this.#pending[this.#written] = undefined
      // Tasks of an earlier session are already recorded.
      if (item) this.#options.recording.task(item, this.#records[this.#written]!)
    }
  }

  /** Compares the array with the recorded tasks, and numbers the new ones. */
  #numberAll(all: readonly ReadyTask[]): void {
    const { history, recording } = this.#options
    if (!history) {
      const first = recording.reserve(all.length)
      for (let index = 0; index < all.length; index++) this.#records.push(first + index)
      return
    }
    const { recorded, total } = history.size()
    let known = 0
    for (const item of all) {
      const record = history.check(item.id, recording.contentOf(item), this.#placeOf(item))
      // The task is new, or the earlier session ended before recording it. Additional rollouts of known tasks are allowed.
      const isFurther = item.rollout !== undefined && item.rollout.number > 1
      if (record === undefined && !isFurther && total !== null && recorded >= total)
        throw this.#changed(`task '${item.id}' is new`)
      if (record !== undefined) {
        known++
        this.#pending[item.index] = undefined
      }
      this.#records.push(record ?? recording.reserve(1))
    }
    if (known === recorded) return
    const given = new Set(all.map(({ id }) => id))
    const missing = [...history.ids()].find((id) => !given.has(id))
    const rollout = missing !== undefined && all.some(({ rollout }) => missing.startsWith(`${rollout?.of}@`))
    throw this.#changed(`task '${missing}' is missing${rollout ? ' (fewer rollouts than before)' : ''}`)
  }

  #changed(what: string): ManyworldsError {
    const { runId } = this.#options
    return new ManyworldsError(
      'RESUME_MISMATCH',
      `${what}: run '${runId}' was started with other tasks. Give the same tasks, or start a new run with another runId`,
    )
  }
}
