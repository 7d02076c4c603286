/**
 * What the viewer's server answers, and what a report file contains. Only types and constants: the page in `web/` imports this
 * file too. All times are milliseconds since 1970, all durations milliseconds.
 *
 * | request (GET) | answer |
 * |---|---|
 * | `/api/start` | `Start` |
 * | `/api/runs` | `RunList` |
 * | `/api/figures?run=ID` | `RunFigures`; needs a scan of the run's responses |
 * | `/api/run?run=ID` | `RunDetails` |
 * | `/api/tasks?run=ID` | lines of `TaskChunk`, all tasks of the run |
 * | `/api/attempts?run=ID` | lines of `AttemptChunk`, all attempts of the run |
 * | `/api/search?run=ID&text=TEXT` | lines of `SearchLine`, as they are found |
 * | `/api/task?run=ID&task=TASK` | `TaskDetails` |
 * | `/api/value?run=ID&task=TASK&of=PART&attempt=PLACE` | `WholeValue`: a part of `TaskDetails` with its texts to their end |
 * | `/api/steps?run=ID&task=TASK&start=START&from=INDEX` | lines of `StepLine` |
 * | `/api/step?run=ID&task=TASK&start=START&index=INDEX` | one `StepLine`, with its texts to their end |
 * | `/api/logs?run=ID&task=TASK&attempt=NUMBER` | `LogLines`, to their end |
 * | `/api/training?training=ID` | `TrainingDetails` |
 * | `/api/compare?a=ID&b=ID&anyway=1` | `ComparedRuns`; without `anyway`, runs with other tasks or graders get no verdict |
 * | `/api/evaluation?run=ID` | `EvaluationSummary` with pass@k, which takes longer than `/api/figures`; null: the run is not graded |
 * | `/api/events?run=ID&after=CURSOR`, `?training=ID` or neither | server-sent events; the data of each is a `LiveEvent` |
 *
 * "Lines" are newline-delimited JSON. An error is `{ error: ApiError }` with a status of 400 or more; as a line, it is the last.
 */
import type { Comparison } from '../grade/compare.ts'
import type { TaskGrade } from '../grade/grade.ts'
import type { EvaluationSummary } from '../grade/summarize.ts'
import type { PlainError } from '../response.ts'
import type { RunOverview } from '../store/stored-task.ts'
import type { TrainingOverview } from '../store/trainings/training-overview.ts'
import type { At, EvalRow, PlanRow, UpdateRow, VersionRow } from '../store/trainings/training-rows.ts'
import type { WorkerName } from '../task.ts'
import type { Cause } from '../text/failure-causes.ts'
import type { Branch } from '../trajectory/branches.ts'
import type { Episode } from '../trajectory/episode.ts'
import type { Step } from '../trajectory/step.ts'
import type { Usage } from '../trajectory/usage.ts'

export interface ApiError {
  readonly code: string
  readonly message: string
}

export interface Start {
  readonly manyworlds: string
  /** The folder or file that is shown. */
  readonly place: string
  /** The page to open first, such as `#/run/ID`. */
  readonly route: string
}

// ---- the list of runs

export interface RunList {
  /** The newest first, without the runs of trainings. */
  readonly runs: readonly RunEntry[]
  readonly trainings: readonly TrainingEntry[]
}

/** A run of the list. A damaged run has only `id` and `problem`. */
export type RunEntry = RunOverview | { readonly runId: string; readonly problem: string }
export type TrainingEntry = TrainingOverview | { readonly id: string; readonly problem: string }

/** Means of a run's responses, without sub-tasks; undefined: no response has it. And what the run has spent, in all attempts. */
export interface RunFigures {
  /** The share of solved rollouts, of graded runs only. */
  readonly success?: { readonly value: number; readonly low: number; readonly high: number }
  readonly reward?: { readonly value: number; readonly low: number; readonly high: number }
  readonly usage: Usage
}

// ---- a run

export interface RunDetails {
  readonly overview: RunOverview
  /**
   * The time of the answer by the server's clock. The clock of the browser may differ from the one that wrote the times
   * of the run.
   */
  readonly now: number
  /** The id of the training that the run belongs to. */
  readonly training?: string
  readonly sessions: readonly SessionEntry[]
  /** The command line that resumes it. */
  readonly resume?: string
  readonly agents: readonly AgentEntry[]
  readonly workers: readonly WorkerEntry[]
  /** Of graded runs with at most 5,000 tasks; of larger ones, ask `/api/evaluation`. */
  readonly evaluation?: EvaluationSummary
}

export interface SessionEntry {
  readonly number: number
  readonly startedAt: number
  readonly endedAt?: number
  /** When the session wrote last. */
  readonly seenAt: number
  readonly ending?: 'finished' | 'interrupted' | 'failed'
  readonly error?: string
  readonly host: string
  readonly pid: number
  readonly node: string
  /** Parsed JSON, without secrets. */
  readonly config: unknown
}

/** `key`: the number by which rows refer to it. */
export interface AgentEntry {
  readonly key: number
  readonly name: string
  readonly module: string
}

export interface WorkerEntry extends WorkerName {
  readonly key: number
  readonly session: number
  /** Both times are unknown in runs of earlier versions. `leftAt` is also missing while the worker is connected. */
  readonly joinedAt?: number
  readonly leftAt?: number
  /** Why it left, if it was lost. */
  readonly lost?: string
}

/** States of a task; a row holds the position in this list. */
export const STATES = ['pending', 'running', 'success', 'failed', 'timeout', 'crashed', 'cancelled'] as const
export type TaskState = (typeof STATES)[number]

/** Roles of an attempt, likewise. `unfinished`: in progress, or interrupted with its session. */
export const ROLES = ['final', 'retried', 'superseded', 'unfinished'] as const

/**
 * Rows of the task table, column by column. In the first answer each task comes once, in order; in an event they are tasks that are
 * new or have changed. A null means that there is no such value.
 */
export interface TaskChunk {
  /** The number of the task in the run, from 1: the key of the row. */
  readonly task: readonly number[]
  readonly id: readonly string[]
  /** The number of the parent task; 0: it is a task of the run. */
  readonly parent: readonly number[]
  readonly agent: readonly number[]
  readonly state: readonly number[]
  /** The number of the latest attempt, from 1; 0: none so far. */
  readonly attempts: readonly number[]
  /** The key of the `Cause`, if the task did not succeed. */
  readonly cause: readonly (number | null)[]
  readonly endedAt: readonly (number | null)[]
  readonly runMs: readonly (number | null)[]
  readonly queuedMs: readonly (number | null)[]
  readonly tokensIn: readonly (number | null)[]
  readonly tokensOut: readonly (number | null)[]
  readonly costUsd: readonly (number | null)[]
  readonly reward: readonly (number | null)[]
  /** 0, 1, or null: not graded. */
  readonly solved: readonly (0 | 1 | null)[]
  readonly worker: readonly (number | null)[]
  readonly version: readonly (number | null)[]
  readonly group: readonly (string | null)[]
  readonly rollout: readonly (number | null)[]
  /** The causes that no earlier chunk of this answer named; in an event, all that its rows refer to. */
  readonly causes: readonly Cause[]
  /** The state of the run that the first chunk of the answer is based on: `/api/events?after=CURSOR` sends all that is newer. */
  readonly cursor: string
}

export type { Cause }

/** Rows of the timeline, column by column, in the order in which they ended; those that are unfinished last. */
export interface AttemptChunk {
  readonly task: readonly number[]
  readonly worker: readonly (number | null)[]
  readonly attempt: readonly number[]
  readonly role: readonly number[]
  readonly state: readonly number[]
  readonly startedAt: readonly number[]
  /** Null: unfinished. Its state is `running`, or `pending` if it was interrupted with its session. */
  readonly endedAt: readonly (number | null)[]
}

// ---- search

export type SearchPlace = 'id' | 'input' | 'answer' | 'error' | 'step' | 'log'

export type SearchLine =
  | { readonly kind: 'hit'; readonly hit: SearchHit }
  /** How far the search is. */
  | { readonly kind: 'progress'; readonly searched: number; readonly of: number }
  /** The last line. `limited`: there may be more hits. */
  | { readonly kind: 'end'; readonly hits: number; readonly limited: boolean }

export interface SearchHit {
  readonly task: number
  readonly id: string
  readonly place: SearchPlace
  /** With `step`: the attempt and the index of the step. */
  readonly attempt?: number
  readonly step?: number
  /** One line around the text, and where in it the text is. */
  readonly excerpt: string
  readonly from: number
  readonly length: number
}

// ---- a task

/**
 * Values are lossless JSON (`trajectory/lossless-json.ts`). A text that is too long is `{ "$": "cut", "value": BEGINNING, "length": N }`.
 */
export interface TaskDetails {
  readonly runId: string
  /** The number of the task in the run. */
  readonly task: number
  readonly id: string
  readonly parentId?: string
  readonly agentName: string
  readonly state: TaskState
  readonly input: unknown
  readonly info?: Readonly<Record<string, unknown>>
  readonly dependsOn?: readonly string[]
  readonly attempts: readonly AttemptDetails[]
  readonly subTasks: readonly { readonly id: string; readonly state: TaskState }[]
  readonly grade?: TaskGrade
  /** All rollouts of the same task, this one included. */
  readonly rollouts: readonly RolloutEntry[]
}

/** Parts of `TaskDetails` whose texts may be cut. The last two are those of the attempt at a place of `attempts`. */
export const PARTS = ['input', 'info', 'grade', 'answer', 'error'] as const
export type TaskPart = (typeof PARTS)[number]

/** The most characters of a part that is sent whole: a browser shows more with difficulty. */
export const MOST_WHOLE_CHARS = 16_000_000

export interface WholeValue {
  readonly value: unknown
}

export interface RolloutEntry {
  readonly id: string
  readonly rollout: number
  readonly state: TaskState
  readonly reward: number | null
  readonly solved: boolean | null
  readonly runMs: number | null
}

export interface AttemptDetails {
  readonly attempt: number
  readonly session: number
  readonly role: (typeof ROLES)[number]
  readonly state: TaskState
  /** Identifies the steps of the attempt; null: it recorded none. */
  readonly start: number | null
  readonly removedSteps?: number
  readonly startedAt: number
  readonly endedAt?: number
  readonly queuedMs?: number
  readonly runMs?: number
  /** The time that model calls waited for rate limits. */
  readonly waitedMs?: number
  readonly worker?: WorkerName
  readonly answer?: unknown
  readonly error?: PlainError
  readonly usage: Usage
  readonly episode?: Episode
  readonly digest?: string
  readonly version?: number
  readonly logs: LogLines
  readonly branches: readonly Branch[]
}

export interface LogLines {
  readonly lines: readonly string[]
  /** The number of lines that were left out, because there are too many. */
  readonly left: number
}

/** A step as lossless JSON, in which long texts are cut as in `TaskDetails`. */
export interface StepLine {
  readonly step: Step
  /** Characters that were left out. */
  readonly cut?: number
  /** Of a model step: the text of each sampled token, if the server sent it. */
  readonly tokenTexts?: readonly string[]
}

// ---- a training

export interface TrainingDetails {
  readonly overview: TrainingOverview
  readonly config: unknown
  readonly plans: readonly (Omit<PlanRow, 'tasks'> & At & { readonly tasks: number })[]
  readonly updates: readonly (Omit<UpdateRow, 'members'> & At & { readonly members: number; readonly run?: string })[]
  readonly versions: readonly (VersionRow & At)[]
  readonly evaluations: readonly (EvalRow & At)[]
  readonly runs: readonly string[]
  /** Version by version, for policies that are texts, such as prompts. */
  readonly texts?: readonly { readonly version: number; readonly text: string }[]
}

// ---- a comparison

export interface ComparedRuns extends Comparison {
  readonly a: string
  readonly b: string
  readonly summaries: { readonly a: EvaluationSummary; readonly b: EvaluationSummary }
  /** Tasks of both runs: flips first, then by how much the reward differs. */
  readonly rows: readonly ComparedTask[]
}

export interface ComparedTask {
  readonly id: string
  readonly a: ComparedSide | null
  readonly b: ComparedSide | null
}

/** Over the rollouts of a task. */
export interface ComparedSide {
  readonly rollouts: number
  readonly solved: number | null
  readonly reward: number | null
  readonly state: TaskState
}

// ---- live

export type LiveEvent =
  | { readonly kind: 'runs'; readonly list: RunList }
  | {
      readonly kind: 'run'
      readonly overview: RunOverview
      readonly tasks?: TaskChunk
      readonly attempts?: AttemptChunk
      /** New workers, and those that left. */
      readonly workers?: readonly WorkerEntry[]
      readonly agents?: readonly AgentEntry[]
    }
  | { readonly kind: 'training'; readonly details: TrainingDetails }
  /** The run or training was removed, or cannot be read. The last event. */
  | { readonly kind: 'gone'; readonly error: ApiError }

// ---- a report file

/** The data of a report. Every field is what the server would answer, or a part of it. */
export interface Report {
  readonly start: Start
  readonly madeAt: number
  readonly list: RunList
  readonly figures: Readonly<Record<string, RunFigures>>
  readonly runs: Readonly<Record<string, ReportedRun>>
  readonly trainings: Readonly<Record<string, TrainingDetails>>
  readonly comparisons: readonly ComparedRuns[]
  /** What may not fit, the most important first. */
  readonly parts: readonly ReportPart[]
  /** What was left out, in words. */
  readonly leftOut: readonly string[]
}

export interface ReportedRun {
  readonly details: RunDetails
  readonly tasks: readonly TaskChunk[]
  readonly attempts: readonly AttemptChunk[]
}

/** A part of a task of a run. A task without any was left out, apart from its row in the table. */
export type ReportPart = { readonly run: string } & (ReportedTask | ReportedSteps | ReportedLogs)

/** Comes before the other parts of the task. Without its logs, and with branch 0 only, because the others are found in its steps. */
interface ReportedTask {
  readonly kind: 'task'
  readonly task: TaskDetails
}

interface ReportedSteps {
  readonly kind: 'steps'
  readonly id: string
  /** By the number of their start. */
  readonly steps: Readonly<Record<number, readonly StepLine[]>>
}

interface ReportedLogs {
  readonly kind: 'logs'
  readonly id: string
  /** Of each attempt, in order. */
  readonly logs: readonly LogLines[]
}
