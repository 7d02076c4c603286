import type { EvaluationSummary } from '../../../src/grade/summarize.ts'
import type {
  AttemptChunk,
  ComparedRuns,
  LiveEvent,
  LogLines,
  Report,
  RunDetails,
  RunFigures,
  RunList,
  SearchLine,
  Start,
  StepLine,
  TaskChunk,
  TaskDetails,
  TaskPart,
  TrainingDetails,
  WholeValue,
} from '../../../src/view/api.ts'

/** What a page subscribes to. */
export type Watched =
  /** `after`: the cursor of the first chunk of tasks; newer changes are sent as events. */
  { readonly run: string; readonly after?: string } | { readonly training: string } | 'runs'

/** The source of the pages' data: a server, or the report file that contains the page. Calls reject with a `SourceError`. */
export interface Source {
  readonly start: Start
  /** For a report: when it was made, and what was left out. Undefined for a server. */
  readonly report: Pick<Report, 'madeAt' | 'leftOut'> | undefined
  runs(): Promise<RunList>
  figures(run: string): Promise<RunFigures>
  run(run: string): Promise<RunDetails>
  /** For runs that are too large for `RunDetails.evaluation`. Null: not graded. */
  evaluation(run: string): Promise<EvaluationSummary | null>
  tasks(run: string, signal: AbortSignal): AsyncIterable<TaskChunk>
  attempts(run: string, signal: AbortSignal): AsyncIterable<AttemptChunk>
  search(run: string, text: string, signal: AbortSignal): AsyncIterable<SearchLine>
  task(run: string, task: string): Promise<TaskDetails>
  /** A part of a task, with complete texts. */
  value(at: ValueAt): Promise<WholeValue>
  steps(at: StepsAt, signal: AbortSignal): AsyncIterable<StepLine>
  /** One step, with complete texts. */
  step(at: StepsAt, index: number): Promise<StepLine>
  logs(run: string, task: string, attempt: number): Promise<LogLines>
  training(training: string): Promise<TrainingDetails>
  /** `anyway`: also runs with other tasks or graders. */
  compare(a: string, b: string, anyway: boolean): Promise<ComparedRuns>
  /**
   * Calls back for each event until the returned function is called. `lost`: whether the connection is lost; reconnecting
   * is automatic.
   */
  watch(what: Watched, event: (event: LiveEvent) => void, lost: (isLost: boolean) => void): () => void
}

/** The steps of an attempt. */
export interface StepsAt {
  readonly run: string
  readonly task: string
  readonly start: number
  /** The index of the first step to load. Default: 0. */
  readonly from?: number
}

/** A part of a task; with `answer` and `error`, of the attempt at a place of `TaskDetails.attempts`. */
export interface ValueAt {
  readonly run: string
  readonly task: string
  readonly of: TaskPart
  readonly attempt?: number
}

/** An error that the page shows: what happened and what to do. */
export class SourceError extends Error {
  readonly code: string

  constructor(code: string, message: string) {
    super(message)
    this.code = code
  }
}
