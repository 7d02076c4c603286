import { ManyworldsError } from '../errors.ts'
import type { ReadyTask, TaskSource } from '../executor/source.ts'
import type { TaskResponse } from '../task.ts'
import type { Earlier } from './earlier.ts'
import type { GroupCommit } from './group-commit.ts'
import { DRIVER_DIED, type Recording } from './recording.ts'

/** Tasks of an array that are written down ahead of their turn, with each commit. */
const AHEAD = 1000

interface Options {
  readonly runId: string
  readonly recording: Recording
  readonly commit: GroupCommit
  readonly earlier: Earlier | undefined
  /** Order matters: each gets the answer of the one before. */
  readonly sequence: boolean
  /** All tasks, where they are known. */
  readonly all: readonly ReadyTask[] | undefined
  /** The source has ended; so many tasks there were. */
  readonly ended: (tasks: number) => void
}

/**
 * Writes tasks down as they are read, and gives those that an earlier session has finished straight to the run, as
 * restored. The tasks of an array are all known: they are compared before anything starts, and written down in the
 * background, so that a later session can tell any change.
 */
export class RecordedSource implements TaskSource {
  readonly #inner: TaskSource
  readonly #options: Options
  /** Tasks of the array that are still to be written down, and where they begin. */
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

  /** The task with what is known of it. */
  #matched(item: ReadyTask): ReadyTask {
    const { earlier, recording } = this.#options
    const known = earlier?.task(item.id, recording.contentOf(item), this.#placeOf(item))
    if (known === undefined) return { ...item, record: this.#record(item) }
    const { response, record, attempts } = known
    if (response && (known.final || (item.skip !== undefined && response.error?.code === 'DEPENDENCY_FAILED')))
      return { ...item, record, restored: response, restoredBytes: known.bytes }
    if (response) recording.again(record, known.fresh)
    else if (known.begun && item.task.rerun === 'never') return { ...item, record, attempts, crashed: DRIVER_DIED }
    return { ...item, record, attempts }
  }

  settled(index: number, response: TaskResponse): void {
    this.#inner.settled?.(index, response)
  }

  /** What is left; what an earlier session has done of it is still to be told, and nothing is written for the rest. */
  close(): ReadyTask[] {
    return this.#inner.close().map((item) => this.#restored(item) ?? item)
  }

  #restored(item: ReadyTask): ReadyTask | undefined {
    const { earlier, recording } = this.#options
    if (!earlier?.isOpen) return undefined
    try {
      const known = earlier.task(item.id, recording.contentOf(item), this.#placeOf(item))
      if (!known?.final) return undefined
      return { ...item, record: known.record, restored: known.response!, restoredBytes: known.bytes }
    } catch {
      // The run ends for another reason.
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
      // Those of an earlier session are there.
      if (item) this.#options.recording.task(item, this.#records[this.#written]!)
    }
  }

  /** Compares the whole array with what was recorded, and gives numbers to what is new. */
  #numberAll(all: readonly ReadyTask[]): void {
    const { earlier, recording } = this.#options
    if (!earlier) {
      const first = recording.reserve(all.length)
      for (let index = 0; index < all.length; index++) this.#records.push(first + index)
      return
    }
    const { recorded, total } = earlier.size()
    let known = 0
    for (const item of all) {
      const record = earlier.check(item.id, recording.contentOf(item), this.#placeOf(item))
      // Recording was cut short before this one, or it is new. More rollouts of the same tasks may be asked for.
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
    const missing = [...earlier.ids()].find((id) => !given.has(id))
    const rollout = missing !== undefined && all.some(({ rollout }) => missing.startsWith(`${rollout?.of}@`))
    throw this.#changed(`task '${missing}' is missing${rollout ? ' (fewer rollouts than before)' : ''}`)
  }

  #changed(what: string): ManyworldsError {
    const { runId } = this.#options
    return new ManyworldsError(
      'RESUME_MISMATCH',
      `${what}: run '${runId}' was begun with other tasks. Give the same ones, or start a run under another runId`,
    )
  }
}
