import { plainError } from '../response.ts'
import type { RunFile } from '../store/run-file.ts'
import type { ResponseRow, StepRow, TaskRow } from '../store/run-rows.ts'
import type { ExperienceFormat, What } from './formats.ts'

/**
 * The type of a column. `json` is any value, as JSON; the others may be null. `text` may contain anything, because people or
 * programs wrote it.
 */
export type ScalarType = 'text' | 'json' | 'integer' | 'real' | 'boolean' | 'time'
/** Lists, for Parquet and JSONL only. Their integers have 32 bits. */
export type ListType = 'integers' | 'reals' | 'booleans'
export type ColumnType = ScalarType | ListType

export interface Column<Row> {
  readonly name: string
  /** `struct`: an object with these fields, for Parquet and JSONL only. */
  readonly type: ColumnType | { readonly struct: Readonly<Record<string, 'text' | 'integer'>> }
  /** `undefined` and `null` both mean no value. A `time` is in milliseconds since 1970. */
  readonly value: (row: Row, runId: string) => unknown
}

const column = <Row>(name: string, type: ColumnType, value: Column<Row>['value']): Column<Row> => ({
  name,
  type,
  value,
})

/** The same names and meanings as in the views of the run file (docs/run-file.md), but with complete values. */
export const RESPONSE_COLUMNS: readonly Column<ResponseRow>[] = [
  column('id', 'text', ({ response }) => response.id),
  column('status', 'text', ({ response }) => response.status),
  column('attempt', 'integer', ({ response }) => response.attempts),
  column('worker', 'text', ({ response }) => response.worker?.id),
  column('host', 'text', ({ response }) => response.worker?.host),
  column('pid', 'integer', ({ response }) => response.worker?.pid),
  column('agent', 'text', ({ response }) => response.agentName),
  column('error_code', 'text', ({ response }) => response.error?.code),
  column('answer', 'json', ({ response }) => response.answer),
  column('error', 'json', ({ response }) => response.error && plainError(response.error)),
  column('queued_ms', 'real', ({ response }) => response.timing.queuedMs),
  column('run_ms', 'real', ({ response }) => response.timing.runMs),
  column('ended_at', 'time', ({ endedAt }) => endedAt),
  column('usage', 'json', ({ response }) => (Object.keys(response.usage).length === 0 ? undefined : response.usage)),
  column('logs', 'json', ({ response }) => (response.logs.length === 0 ? undefined : response.logs)),
  column('seq', 'integer', ({ seq }) => seq),
  column('epoch', 'integer', ({ epoch }) => epoch),
  column('reward', 'real', ({ reward }) => reward),
  column('success', 'boolean', ({ success }) => success),
  column('tokens_in', 'integer', ({ response }) => response.usage.inputTokens),
  column('tokens_out', 'integer', ({ response }) => response.usage.outputTokens),
  column('cost', 'real', ({ response }) => response.usage.costUsd),
  column('digest', 'text', ({ response }) => response.digest),
  column('version', 'integer', ({ version }) => version),
  column('waited_ms', 'real', ({ response }) => response.timing.waitedMs),
  column('ending', 'text', ({ ending }) => ending),
  column('episode_reward', 'real', ({ response }) => response.episode?.reward),
  column('episode_success', 'boolean', ({ response }) => response.episode?.success),
  column('final_observation', 'json', ({ response }) => response.episode?.finalObservation),
  column('removed_steps', 'integer', ({ response }) => response.removedSteps),
  column('run_id', 'text', (_, runId) => runId),
]

export const STEP_COLUMNS: readonly Column<StepRow>[] = [
  column('id', 'text', ({ id }) => id),
  column('attempt', 'integer', ({ attempt }) => attempt),
  column('step', 'integer', ({ step }) => step.index),
  column('at_ms', 'real', ({ step }) => step.atMs),
  column('action', 'json', ({ step }) => step.action),
  column('observation', 'json', ({ step }) => step.observation),
  column('reward', 'real', ({ step }) => step.reward),
  column('record', 'json', ({ step }) => step),
  column('is_final', 'boolean', ({ isFinal }) => isFinal),
  column('kind', 'text', ({ step }) => step.kind),
  column('version', 'integer', ({ step }) => ('policy' in step ? step.policy?.version : undefined)),
  column('usage', 'json', ({ step }) => step.usage),
  column('run_id', 'text', (_, runId) => runId),
]

export const TASK_COLUMNS: readonly Column<TaskRow>[] = [
  column('id', 'text', ({ id }) => id),
  column('place', 'integer', ({ place }) => place),
  column('parent', 'text', ({ parentId }) => parentId),
  column('parent_attempt', 'integer', ({ parentAttempt }) => parentAttempt),
  column('agent', 'text', ({ agentName }) => agentName),
  column('status', 'text', ({ status }) => status),
  column('input', 'json', ({ input }) => input),
  column('info', 'json', ({ info }) => info),
  column('depends_on', 'json', ({ dependsOn }) => dependsOn),
  column('options', 'json', ({ options }) => options),
  column('hash', 'text', ({ hash }) => hash),
  column('group_id', 'text', ({ groupId }) => groupId),
  column('rollout', 'integer', ({ rollout }) => rollout),
  column('run_id', 'text', (_, runId) => runId),
]

/** A table of a run: its columns, and its rows, which are read one by one. */
export interface Table<Row> {
  readonly what: What | ExperienceFormat
  readonly runId: string
  readonly columns: readonly Column<Row>[]
  rows(): Iterable<Row> | AsyncIterable<Row>
  /** The parts of a JSONL line, if it is not the row itself. */
  line?(row: Row): Iterable<string>
  /** The name of a row in messages. */
  nameOf(row: Row): string
  /** The run of a row, if there are several runs. */
  runOf?(row: Row): string
}

/** `subTasks`: also rows of sub-tasks. */
export function tableOf(run: RunFile, what: What, subTasks: boolean): Table<never> {
  const { runId } = run
  const rows = run.rows()
  const responses: Table<ResponseRow> = {
    ...{ what, runId, columns: RESPONSE_COLUMNS },
    rows: () => rows.responses({ subTasks }),
    nameOf: ({ response }) => `the response of task '${response.id}'`,
  }
  const steps: Table<StepRow> = {
    ...{ what, runId, columns: STEP_COLUMNS },
    rows: () => rows.steps({ subTasks }),
    nameOf: ({ id, attempt, step }) => `step ${step.index} of attempt ${attempt} of task '${id}'`,
  }
  const tasks: Table<TaskRow> = {
    ...{ what, runId, columns: TASK_COLUMNS },
    rows: () => rows.tasks({ subTasks }),
    nameOf: ({ id }) => `task '${id}'`,
  }
  return { responses, steps, tasks }[what] as unknown as Table<never>
}
