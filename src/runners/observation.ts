import type { RunRecorder } from '../executor/recorder.ts'
import type { RunSink } from '../executor/run.ts'
import type { TaskSource } from '../executor/source.ts'
import type { ObserveRun, RunEnding, RunObserver, RunStart } from '../progress/observer.ts'
import type { Redactor } from '../redaction/redactor.ts'
import { shownResponse } from '../redaction/shown-response.ts'
import type { TaskResponse } from '../task.ts'
import { say } from '../text/say.ts'
import type { Step } from '../trajectory/step.ts'
import { within } from '../within.ts'
import { CountedSource } from './counted-source.ts'
import { StepWatch } from './step-watch.ts'

/** How long the end of a run waits for promises of the user's functions. */
const SETTLE_MS = 5000

/** The observers of a run, as one. Most runs have none, and pay nothing. */
export class Observation {
  #observers: readonly RunObserver[] = []
  readonly #redactor: Redactor | undefined
  /** The run cannot go on. */
  failed = (_error: Error) => {}
  /** What a function of the user's threw, or rejected with. */
  #thrown: Error | undefined
  /** Functions of the user's that have returned a promise. */
  readonly #unsettled = new Set<Promise<void>>()

  constructor(redactor: Redactor | undefined) {
    this.#redactor = redactor
  }

  begin(observe: readonly ObserveRun[], start: RunStart): void {
    this.#observers = observe.map((begin) => begin(start))
  }

  /** Makes an observer of a function of the user's. What it throws, or rejects with, fails the run; it is not called again. */
  guard<Event>(call: (event: Event) => unknown): (event: Event) => void {
    return (event) => {
      if (this.#thrown) return
      try {
        const result = call(event)
        if (!(result instanceof Promise)) return
        const settled: Promise<void> = result
          .then(nothing, (error: unknown) => this.#fail(error))
          .finally(() => this.#unsettled.delete(settled))
        this.#unsettled.add(settled)
      } catch (error) {
        this.#fail(error)
      }
    }
  }

  get thrown(): Error | undefined {
    return this.#thrown
  }

  /** Waits for the promises of the user's functions, up to a limit. */
  async settled(): Promise<void> {
    if (this.#unsettled.size === 0 || (await within(SETTLE_MS, Promise.all(this.#unsettled)))) return
    say(
      `the run has ended, but a promise of \`onStep\` or \`progress\` has not settled for ${SETTLE_MS / 1000} s; it is no longer waited for`,
    )
  }

  #fail(error: unknown): void {
    this.#thrown ??= error instanceof Error ? error : new Error(String(error))
    this.failed(this.#thrown)
  }

  notice(line: string): void {
    if (this.#observers.length === 0) say(line)
    for (const observer of this.#observers) observer.notice(line)
  }

  steps(taskId: string, attempt: number, steps: readonly Step[]): void {
    for (const observer of this.#observers)
      if (observer.step) for (const step of steps) observer.step({ taskId, attempt, step })
  }

  total(tasks: number): void {
    for (const observer of this.#observers) observer.total(tasks)
  }

  end(ending: RunEnding): void {
    for (const observer of this.#observers) observer.end(ending)
  }

  /** Tells the observers how many tasks there were when the source ends. */
  wrapSource(source: TaskSource): TaskSource {
    return this.#observers.length === 0 ? source : new CountedSource(source, (tasks) => this.total(tasks))
  }

  /** Shows every response to the observers. */
  wrapSink(sink: RunSink): RunSink {
    if (this.#observers.length === 0) return sink
    return {
      ...sink,
      response: (index, response, bytes, entry) => {
        const shown = shownResponse(response, this.#redactor)
        const isNotRun = neverRan(response)
        for (const observer of this.#observers)
          if (isNotRun) observer.notRun?.(shown)
          else observer.response(shown)
        sink.response(index, response, bytes, entry)
      },
    }
  }

  /** Tells the observers of retries and steps. */
  wrapRecorder(recorder: RunRecorder | undefined): RunRecorder | undefined {
    if (this.#observers.length === 0) return recorder
    const watch = new StepWatch(
      (task, attempt, steps) => this.steps(task, attempt, steps),
      (line) => this.notice(line),
    )
    return {
      around: recorder?.around,
      joined: (worker) => recorder?.joined(worker),
      left: (worker, lost) => recorder?.left(worker, lost),
      retried: (entry, response) => {
        if (!response.success)
          for (const observer of this.#observers) observer.retry(entry.id, response.error.code, response.error.message)
        recorder?.retried(entry, response)
      },
      superseded: (lease, response) => recorder?.superseded(lease, response),
      steps: (lease, steps, bytes) => {
        if (recorder) return recorder.steps(lease, steps, bytes)
        watch.committed(lease, steps)
        lease.worker.stored(bytes)
      },
      running: (lease, ms) => recorder?.running(lease, ms),
      stepsOf: (entry, records) => recorder!.stepsOf(entry, records),
      subTask: (child, instead) => recorder?.subTask(child, instead),
      begin: (entry, start) => (recorder ? recorder.begin(entry, start) : start()),
      subTaskEnded: (child, response) => recorder?.subTaskEnded(child, response),
      answersOf: (entry, attempt) => recorder?.answersOf(entry, attempt) ?? [],
      called: (lease, service, key, safe) => (recorder ? recorder.called(lease, service, key, safe) : safe()),
      answer: (lease, service, key, value, safe) =>
        recorder ? recorder.answer(lease, service, key, value, safe) : safe(),
    }
  }
}

const nothing = () => {}

/** A task that was cancelled before it started is not done, rather than failed. */
const neverRan = ({ status, worker, error }: TaskResponse) =>
  status === 'cancelled' && worker === undefined && error.code !== 'DEPENDENCY_FAILED'
