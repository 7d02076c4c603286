import type { TaskChunk } from '../../src/view/api.ts'

type Row = { readonly [Name in Exclude<keyof TaskChunk, 'causes' | 'cursor'>]: TaskChunk[Name][number] }

const EMPTY: Omit<Row, 'task' | 'id'> = {
  ...{ parent: 0, agent: 1, state: 2, attempts: 1, cause: null, endedAt: null, runMs: null, queuedMs: null },
  ...{ tokensIn: null, tokensOut: null, costUsd: null, reward: null, solved: null, worker: null, version: null },
  ...{ group: null, rollout: null },
}

/** Rows of the task table, with what a test cares about. */
export function chunkOf(
  rows: readonly (Partial<Row> & Pick<Row, 'task'>)[],
  causes: TaskChunk['causes'] = [],
): TaskChunk {
  const whole: Row[] = rows.map((row) => ({ ...EMPTY, id: `t${row.task}`, ...row }))
  const names = ['task', 'id', ...Object.keys(EMPTY)] as (keyof Row)[]
  return {
    ...Object.fromEntries(names.map((name) => [name, whole.map((row) => row[name])])),
    causes,
    cursor: '',
  } as never
}
