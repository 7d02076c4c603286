import { outcomeOf } from '../../grade/outcome.ts'
import { atLeast } from '../../grade/threshold.ts'
import { EvaluationTally } from '../../progress/evaluation-tally.ts'
import type { RunObserver, RunStart } from '../../progress/observer.ts'
import { escapeControls } from '../../text/escape-controls.ts'
import { runArgument } from '../../text/own-command.ts'
import { say } from '../../text/say.ts'
import type { TrainingObserver, TrainingStart } from '../../train/pipeline/observer.ts'
import { errorText } from '../frame/error-report.ts'

/** The outcome of all runs and trainings of a script. */
export class Outcome {
  failed = false
  runs = 0
  trainings = 0
  sweeps = 0
  /** Whether a run or training ended with work left, which a resume does: at its deadline, its budget, without its model. */
  stopped = false
  /** Whether workers on other machines were used. */
  remote = false
  /** The first stored run or training, by its name on the command line. */
  stored: string | undefined
  /** Errors that ended runs and that the script did not rethrow, with their messages. */
  readonly #errors = new Map<unknown, string>()
  /** Runs that have not ended; each knows whether it still has work to do. */
  readonly #open = new Set<() => boolean>()
  readonly #failUnder: number | undefined
  readonly #maxUngraded: number | undefined

  /**
   * `failUnder`: the share of tasks that must be solved. If it is given, failed tasks do not affect the exit code, but more than
   * `maxUngraded` rollouts without a result do.
   */
  constructor(failUnder: number | undefined, maxUngraded: number | undefined) {
    this.#failUnder = failUnder
    this.#maxUngraded = maxUngraded
  }

  /** Whether the script exits before a run is done. An idle executor counts as done. */
  get leftHalfDone(): boolean {
    return [...this.#open].some((isBusy) => isBusy())
  }

  /** Marks an error and its causes as reported. */
  said(error: unknown): void {
    for (let cause = error; cause instanceof Error; cause = cause.cause) this.#errors.delete(cause)
  }

  /** Reports errors that ended a run and that the script caught without reporting them. */
  sayErrors(): void {
    for (const [error, what] of this.#errors)
      process.stderr.write(`manyworlds: ${escapeControls(what)} failed: ${errorText(error)}\n`)
    this.#errors.clear()
  }

  watch(start: RunStart, shown: RunObserver | undefined): RunObserver {
    let { total } = start
    let seen = 0
    const evaluation = this.#failUnder === undefined ? undefined : new EvaluationTally()
    const isBusy = () => (total === undefined ? start.running() > 0 : seen < total)
    this.runs++
    this.#begun(start.runId, start, isBusy)
    return {
      response: (response) => {
        seen++
        evaluation?.add(outcomeOf(response))
        if (!response.success && !evaluation) this.failed = true
        shown?.response(response)
      },
      notRun: (response) => {
        evaluation?.add(outcomeOf(response))
        shown?.notRun?.(response)
      },
      retry: (...retry) => shown?.retry(...retry),
      total: (tasks) => {
        total = tasks
        shown?.total(tasks)
      },
      notice: (line) => (shown ? shown.notice(line) : say(line)),
      end: (ending) => {
        this.#ended(`run ${start.runId}`, ending, isBusy)
        shown?.end(ending)
        if (evaluation) this.#judge(evaluation, start.runId)
      },
    }
  }

  /** Failed episodes are a normal part of training: only an error that ends the training counts as a failure. */
  watchTraining(start: TrainingStart, shown: Partial<TrainingObserver> = {}): TrainingObserver {
    let busy = false
    const isBusy = () => busy
    this.trainings++
    this.#begun(start.sweep ?? start.id, start, isBusy)
    return {
      goal: (goal) => {
        busy = true
        shown.goal?.(goal)
      },
      run: (...run) => shown.run?.(...run),
      episode: (runId, restored) => shown.episode?.(runId, restored),
      update: (row) => shown.update?.(row),
      evaluation: (row) => shown.evaluation?.(row),
      epoch: (report) => {
        busy = false
        shown.epoch?.(report)
      },
      notice: (line) => (shown.notice ? shown.notice(line) : say(line)),
      end: (ending) => {
        this.#ended(`training ${start.id}`, ending, isBusy)
        shown.end?.(ending)
      },
    }
  }

  #begun(id: string, { file, engineName }: Pick<RunStart, 'file' | 'engineName'>, isBusy: () => boolean): void {
    if (engineName !== 'local') this.remote = true
    if (file !== undefined) this.stored ??= runArgument(id, file)
    this.#open.add(isBusy)
  }

  #ended(what: string, ending: { error: Error | undefined; interrupted: boolean }, isBusy: () => boolean): void {
    this.#open.delete(isBusy)
    if (ending.error || ending.interrupted) this.failed = true
    if (ending.interrupted) this.stopped = true
    if (ending.error) this.#errors.set(ending.error, what)
  }

  /** Reports whether enough tasks are solved. */
  #judge(evaluation: EvaluationTally, runId: string): void {
    const summary = evaluation.gated()
    if (!summary) {
      this.failed = true
      return say(
        `--fail-under: no answer of run ${escapeControls(runId)} is graded; give tasks or the run a grader with \`grade\``,
      )
    }
    const { passed, lines } = atLeast(summary, this.#failUnder!, {
      ...(this.#maxUngraded !== undefined && { maxUngraded: this.#maxUngraded }),
    })
    if (!passed) this.failed = true
    for (const line of lines) say(escapeControls(line))
  }
}
