import type { Column } from '../columns.ts'
import { type TokenSample, temperatures } from './token-samples.ts'

/** The fields of systems that train from tokens, with their names. docs/exports.md explains them. */

const column = (name: string, type: Column<TokenSample>['type'], value: Column<TokenSample>['value']) => ({
  name,
  type,
  value,
})

const prompt = ({ row, promptLength }: TokenSample) => Array.from(row.ids.subarray(0, promptLength))
const completion = ({ row, promptLength }: TokenSample) => Array.from(row.ids.subarray(promptLength))
const mask = ({ row, promptLength }: TokenSample) => Array.from(row.mask.subarray(promptLength))
const logProbs = ({ row, promptLength }: TokenSample) => Array.from(row.logProbs.subarray(promptLength))
const reward = ({ reward }: TokenSample) => reward

/** The origin of a sample. */
const ORIGIN = {
  run_id: 'text',
  trajectory_id: 'text',
  task_id: 'text',
  row: 'integer',
  agent: 'text',
  split: 'text',
  group_id: 'text',
  rollout: 'integer',
} as const

const originOf = ({ trajectory, place }: TokenSample, runId: string): Record<keyof typeof ORIGIN, unknown> => {
  const { id, task, agent, split, group, rollout } = trajectory
  return {
    ...{ run_id: runId, trajectory_id: id, task_id: task, row: place, agent, split },
    ...{ group_id: group?.id ?? null, rollout },
  }
}

const origin = (Object.keys(ORIGIN) as (keyof typeof ORIGIN)[]).map((name) =>
  column(name, ORIGIN[name], (sample, runId) => originOf(sample, runId)[name]),
)

export const TOKEN_COLUMNS = {
  /** AgentLoopOutput. */
  verl: [
    column('prompt_ids', 'integers', prompt),
    column('response_ids', 'integers', completion),
    column('response_mask', 'integers', mask),
    column('response_logprobs', 'reals', logProbs),
    column('reward_score', 'real', reward),
    column('num_turns', 'integer', ({ turns }) => turns),
    column('extra_fields', { struct: ORIGIN }, originOf),
  ],
  /** The result of a `rollout_func`; its other columns are passed to reward functions. */
  trl: [
    column('prompt_ids', 'integers', prompt),
    column('completion_ids', 'integers', completion),
    column('logprobs', 'reals', logProbs),
    column('env_mask', 'integers', mask),
    column('reward', 'real', reward),
    ...origin,
  ],
  /** TrainingSample. */
  'prime-rl': [
    column('token_ids', 'integers', ({ row }) => Array.from(row.ids)),
    column('mask', 'booleans', ({ row }) => Array.from(row.mask, (one) => one === 1)),
    column('logprobs', 'reals', ({ row }) => Array.from(row.logProbs)),
    column('temperatures', 'reals', ({ row }) => temperatures(row)),
    column('env_name', 'text', ({ trajectory }) => trajectory.agent),
    column('advantages', 'reals', ({ row, advantage }) =>
      advantage === null ? null : Array.from(row.mask, (one) => (one === 1 ? advantage : 0)),
    ),
    column('reward', 'real', reward),
    ...origin,
  ],
} as const satisfies Readonly<Record<string, readonly Column<TokenSample>[]>>
