import { Deque } from '../deque.ts'
import type { Dispatcher } from '../executor/dispatcher.ts'
import type { Run, RunOptions, RunSink } from '../executor/run.ts'
import type { ReadyTask, TaskSource } from '../executor/source.ts'
import type { TaskGrade } from '../grade/grade.ts'
import { type Grader, graderFor } from '../grade/grader.ts'
import { gradeFrom, gradeOfEpisode, gradingTask, isPending, noGrade } from '../grade/grading-task.ts'
import { setGrade } from '../response.ts'
import type { TaskLike, TaskResponse } from '../task.ts'
import { packTask } from '../task-checks.ts'
import type { Episode } from '../trajectory/episode.ts'
import type { Usage } from '../trajectory/usage.ts'

/** Answers that wait for their grade; beyond this no more tasks are read. */
const MAX_PENDING = 10_000

interface Parts {
  readonly dispatcher: Dispatcher
  /** Of the run that is graded; its gradings are a run beside it, on the same workers. */
  readonly options: RunOptions
  readonly gradeTimeoutMs: number
  /** The grader of answers whose task has none. */
  readonly grader: Grader | undefined
  /** Calls `safe` when the grade is on disk. Left out for runs without a store. */
  readonly store: ((record: number, attempt: number, grade: TaskGrade, safe: () => void) => void) | undefined
  /** Fails the run that is graded. */
  fail(error: Error): void
  /** Counts what a grader has spent for the task with this index. */
  spend(usage: Usage, index: number): void
  /** There is room for more tasks. */
  wake(): void
}

/** A response that waits for its grade. */
interface Graded {
  readonly index: number
  readonly response: TaskResponse
  readonly bytes: number
  readonly record: number
  readonly grader: Grader
  readonly deliver: () => void
}

/**
 * Grades the answers of a run, after their commit and before they are reported. A grader is code by reference, as an agent
 * is, and each grading is a task of a second run on the same workers. So it is placed and timed out as any task is, survives
 * crashes, and never makes the graded episode run again.
 */
export class Grading {
  readonly #parts: Parts
  /** Tasks in flight, by index: a grader sees the task as well as the answer. */
  readonly #tasks = new Map<number, ReadyTask>()
  readonly #source = new SampleSource()
  readonly #pending = new Map<number, Graded>()
  #run: Run | undefined
  #next = 0
  #full = false
  #error: Error | undefined
  #idle = () => {}
  /** When the deadline of the run passes, by the clock of `performance`. */
  readonly #deadline: number | undefined
  /** No answer is graded any more. */
  #over = false
  #graceTimer: NodeJS.Timeout | undefined
  /** Whether it was stopped, and why: the run may have no task left that was. */
  stopped: Pick<Run, 'stopping' | 'aborted'> | undefined

  constructor(parts: Parts) {
    this.#parts = parts
    const { deadlineMs } = parts.options
    this.#deadline = deadlineMs === undefined ? undefined : performance.now() + deadlineMs
  }

  /** A source whose tasks are remembered until they are graded. */
  wrapSource(source: TaskSource): TaskSource {
    const keep = (item: ReadyTask) => {
      if (this.#graderOf(item.task)) this.#tasks.set(item.index, item)
      return item
    }
    return {
      open: (wake, room) => source.open(wake, room),
      pull: () => {
        const item = source.pull()
        return typeof item === 'string' ? item : keep(item)
      },
      settled: (index, response) => source.settled?.(index, response),
      close: () => source.close().map(keep),
    }
  }

  /** A sink that passes responses on with their grades. */
  wrapSink(sink: RunSink): RunSink {
    return {
      ...sink,
      response: (index, response, bytes, entry) => {
        const item = this.#tasks.get(index)
        this.#tasks.delete(index)
        const deliver = () => sink.response(index, response, bytes, entry)
        const grader = item && this.#graderOf(item.task)
        if ((response.grade !== undefined && !isPending(response.grade)) || !response.success) return deliver()
        if (grader) {
          const record = entry?.record ?? item.record ?? 0
          void this.#begin({ index, response, bytes, record, grader, deliver }, item)
        } else {
          if (isJudged(response.episode)) setGrade(response, gradeOfEpisode(response))
          deliver()
        }
      },
      full: () => {
        this.#full = this.#pending.size >= MAX_PENDING
        return this.#full || sink.full()
      },
    }
  }

  /** Answers that wait for their grade. */
  get pending(): number {
    return this.#pending.size
  }

  /** Answers get this long to be graded. A resumed run grades the others. */
  stop(graceMs: number): void {
    this.stopped ??= { stopping: 'cancelled', aborted: undefined }
    clearTimeout(this.#graceTimer)
    if (graceMs === 0) this.#giveUp()
    else this.#graceTimer = setTimeout(() => this.#giveUp(), graceMs)
  }

  /** All tasks have ended. Resolves when the last grade was passed on; to an error if grading failed. */
  async finish(): Promise<Error | undefined> {
    if (this.#pending.size > 0) await new Promise<void>((resolve) => (this.#idle = resolve))
    clearTimeout(this.#graceTimer)
    this.#source.end()
    if (this.#run) this.#parts.dispatcher.wake(this.#run)
    return this.#error
  }

  /** Grades can no longer be stored, so nothing waits for them. */
  abandon(): void {
    this.#pending.clear()
    this.#giveUp()
    this.#idle()
  }

  #graderOf(task: TaskLike): Grader | undefined {
    return graderFor(task, this.#parts.grader)
  }

  async #begin(graded: Graded, { task, id }: ReadyTask): Promise<void> {
    const number = this.#next++
    this.#pending.set(number, graded)
    const { response, grader } = graded
    try {
      const work = await gradingTask(grader, task, response)
      if (this.#over) return this.#end(number, noGrade(grader, 'GRADING_CANCELLED', 'the run was stopped'))
      this.#source.push({ index: number, id, task: work, packed: packTask(work, number) })
      this.#open()
    } catch (error) {
      this.#end(number, noGrade(grader, 'GRADER_THREW', (error as Error).message))
    }
  }

  #open(): void {
    const { dispatcher, options, gradeTimeoutMs } = this.#parts
    if (this.#run) return dispatcher.wake(this.#run)
    this.#run = dispatcher.open(
      {
        ...options,
        runId: `${options.runId}.grading`,
        timeoutMs: gradeTimeoutMs,
        maxAttempts: 1,
        retryIf: undefined,
        deadlineMs: this.#deadline && Math.max(0, this.#deadline - performance.now()),
        speculate: false,
        keepSteps: false,
        recorded: false,
        budget: undefined,
      },
      this.#source,
      {
        response: (number, response) => this.#graded(number, response),
        full: () => false,
        end: (error, { stopping, aborted }) => {
          this.#over = true
          if (stopping !== undefined) this.stopped ??= { stopping, aborted }
          if (!error) return
          this.#error = error
          // A grader's code cannot be loaded, or no worker can be started: pass the answers on without a grade.
          for (const [pending, { grader }] of [...this.#pending])
            this.#end(pending, noGrade(grader, 'GRADING_CANCELLED', error.message))
          this.#parts.fail(error)
        },
      },
      undefined,
    )
  }

  #graded(number: number, response: TaskResponse): void {
    const graded = this.#pending.get(number)
    if (!graded) return
    // The cost of a judge counts, but a run that has spent its budget still grades the answers it has.
    this.#parts.spend(response.usage, graded.index)
    this.#end(number, gradeFrom(graded.grader, response))
  }

  #end(number: number, given: TaskGrade): void {
    const graded = this.#pending.get(number)
    if (!graded) return
    const { redactor } = this.#parts.options
    const grade = redactor ? redactor.value(given) : given
    setGrade(graded.response, grade)
    const done = () => {
      graded.deliver()
      this.#pending.delete(number)
      if (this.#full && this.#pending.size < MAX_PENDING) this.#parts.wake()
      if (this.#pending.size === 0) this.#idle()
    }
    const { store } = this.#parts
    // A resumed run grades what was cancelled.
    if (store && grade.error?.code !== 'GRADING_CANCELLED') store(graded.record, graded.response.attempts, grade, done)
    else done()
  }

  #giveUp(): void {
    this.#over = true
    if (this.#run) this.#parts.dispatcher.stopRun(this.#run, 'cancelled')
  }
}

/** Samples that are handed in one by one. */
class SampleSource implements TaskSource {
  readonly #queue = new Deque<ReadyTask>()
  #ended = false

  open(): void {}

  push(item: ReadyTask): void {
    this.#queue.push(item)
  }

  end(): void {
    this.#ended = true
  }

  pull(): ReadyTask | 'wait' | 'end' {
    return this.#queue.shift() ?? (this.#ended ? 'end' : 'wait')
  }

  close(): ReadyTask[] {
    this.#ended = true
    return this.#queue.drain()
  }
}

/** Whether the environment judged the episode. An agent without an environment has no judge. */
const isJudged = (episode: Episode | undefined) =>
  episode !== undefined && (episode.reward !== null || episode.success !== null)
