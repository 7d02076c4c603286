import type { LossSettings } from '../../../dist/train/loss-settings.js'
import type { RowNumbers } from './tiny.ts'

/** Settings of TRL's `GRPOConfig`, and settings of ours that mean the same. */
export interface ModelLossCase {
  readonly name: string
  readonly ours: LossSettings
  readonly config: Readonly<Record<string, unknown>>
  /** What each token of a row weighs in the loss. */
  readonly weight: (row: RowNumbers, rows: readonly RowNumbers[]) => number
}

const LONGEST = 16
const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0)

const weights = {
  dapo: (_: RowNumbers, rows: readonly RowNumbers[]) => 1 / sum(rows.map(({ mask }) => sum(mask))),
  grpo: ({ mask }: RowNumbers, rows: readonly RowNumbers[]) => 1 / (rows.length * sum(mask)),
  dr_grpo: (_: RowNumbers, rows: readonly RowNumbers[]) => 1 / (rows.length * LONGEST),
}

const TYPES = [
  { type: 'dapo', weight: weights.dapo, ours: { name: 'clip' }, config: {} },
  { type: 'dapo', weight: weights.dapo, ours: { name: 'clip', dualClip: 1.5 }, config: { delta: 1.5 } },
  { type: 'grpo', weight: weights.grpo, ours: { name: 'clip', clipHigh: 0.28 }, config: { epsilon_high: 0.28 } },
  { type: 'dr_grpo', weight: weights.dr_grpo, ours: { name: 'clip' }, config: { max_completion_length: LONGEST } },
  // TRL's bound is that of the ratio itself, not its distance from 1.
  { type: 'cispo', weight: weights.dapo, ours: { name: 'cispo', clipHigh: 0.5 }, config: { epsilon_high: 1.5 } },
  { type: 'dapo', weight: weights.dapo, ours: { name: 'is' }, config: { epsilon: 1, epsilon_high: 1e9 } },
] as const

const KL = [
  { label: '', ours: {}, config: { beta: 0 } },
  { label: ', KL', ours: { kl: 0.04 }, config: { beta: 0.04, use_bias_correction_kl: true } },
  {
    ...{ label: ', KL as it is', ours: { kl: 0.04, klCorrection: false } },
    config: { beta: 0.04, use_bias_correction_kl: false },
  },
] as const

export const MODEL_LOSS_CASES: readonly ModelLossCase[] = TYPES.flatMap(({ type, weight, ours, config }) =>
  KL.map((kl) => ({
    name: `${type} as ${ours.name}${'dualClip' in ours ? ', dual clip' : ''}${kl.label}`,
    ...{ ours: { ...ours, ...kl.ours }, weight },
    config: { loss_type: type, epsilon: 0.2, epsilon_high: 0.2, ...config, ...kl.config },
  })),
)
