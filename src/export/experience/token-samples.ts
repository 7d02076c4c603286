import { judgementOfTrajectory, refusedCalls } from '../../grade/judgement.ts'
import { messagesOf } from '../../trajectory/conversation.ts'
import type { ModelStep, Step } from '../../trajectory/step.ts'
import { type TokenRow, tokenRows } from '../../trajectory/token-rows.ts'
import type { UntrainableCode } from '../../trajectory/trainable.ts'
import type { Trajectory } from '../../trajectory/trajectory.ts'
import { REASONS, type Reason, UNTRAINABLE } from './left-out.ts'

/** A row of tokens, divided where the agent's model starts to generate. */
export interface TokenSample {
  readonly trajectory: Trajectory
  /** The index among the rows of the trajectory. */
  readonly place: number
  readonly row: TokenRow
  /** The number of token ids before the first trained one. */
  readonly promptLength: number
  /** The number of messages in the conversation, without system messages. */
  readonly turns: number
  readonly reward: number | null
  /** `reward` minus the mean of its group; null if there is no group to compare with. */
  readonly advantage: number | null
}

type Rows = readonly TokenSample[] | Reason

/**
 * The samples of a trajectory, with tokens exactly as the sampler had them. If a part of it cannot be trained, the whole
 * trajectory is left out: the reward applies to the whole.
 */
export function tokenSamples(
  trajectory: Trajectory,
  meanOf: (group: string) => number | undefined,
  allowed: readonly UntrainableCode[] = [],
): Rows {
  const reason = whyNot(trajectory, allowed)
  if (reason) return reason
  const { rows, refused } = tokenRows(trajectory, { allowed })
  if (rows.length === 0 || refused.length > 0) return REASONS.noRow
  const { reward } = judgementOfTrajectory(trajectory)
  const mean = trajectory.group === null ? undefined : meanOf(trajectory.group.id)
  const advantage = reward === null || mean === undefined ? null : reward - mean
  return rows.map((row, place) => {
    const promptLength = row.mask.indexOf(1)
    return { trajectory, place, row, promptLength, turns: turnsOf(trajectory.steps, row), reward, advantage }
  })
}

/** Why a trajectory cannot be exported. `allowed`: as in `whyUntrainable`. */
export function whyNot({ steps, ending }: Trajectory, allowed: readonly UntrainableCode[] = []): Reason | undefined {
  if (ending.kind === 'failed' || ending.kind === 'cancelled') return REASONS.unfinished
  if (!steps.some((step) => step.kind === 'model' && step.role === 'agent')) return REASONS.noModel
  const [refused] = refusedCalls({ steps }, allowed)
  return refused && UNTRAINABLE[refused.code]
}

function turnsOf(steps: readonly Step[], { spans }: TokenRow): number {
  const last = steps[spans.at(-1)!.step] as Step & ModelStep
  return messagesOf(steps, last).filter(({ role }) => role !== 'system').length
}

/** For each token, the temperature of the completion that it precedes or belongs to. */
export function temperatures({ ids, spans }: TokenRow): number[] {
  const trained = spans.filter(({ isTrained }) => isTrained)
  const values: number[] = []
  for (const { end, temperature } of trained) while (values.length < end) values.push(temperature)
  while (values.length < ids.length) values.push(trained.at(-1)!.temperature)
  return values
}
