import { rewardOf, successOf } from '../export/experience/selection.ts'
import { tokenSamples } from '../export/experience/token-samples.ts'
import type { TaskResponse } from '../task.ts'
import type { Step } from '../trajectory/step.ts'
import type { Trajectory } from '../trajectory/trajectory.ts'

/** A row of tokens, with TRL's field names. */
export interface AnsweredRow {
  readonly prompt_ids: readonly number[]
  /** Everything after the prompt: completions, and the tokens between them. */
  readonly completion_ids: readonly number[]
  /** The sampler's log-probabilities; 0 where the mask is 0. */
  readonly logprobs: readonly number[]
  /** 1: sampled by the agent's model; 0: from tools or others. */
  readonly env_mask: readonly number[]
  /** Messages of the conversation, without system messages. */
  readonly num_turns: number
}

export interface AnsweredRollout {
  /** The id of the trajectory in its run. */
  readonly trajectory: string
  /** From 1. */
  readonly rollout: number
  /** Null if the rollout failed, or the reward is unknown. */
  readonly reward: number | null
  readonly success: boolean | null
  readonly parts: Readonly<Record<string, { readonly value: number; readonly weight: number }>> | null
  readonly error: { readonly code: string; readonly message: string } | null
  readonly num_turns: number
  /** Empty if the rollout failed, or its tokens cannot be trained on for the reason in `refused`. */
  readonly rows: readonly AnsweredRow[]
  readonly refused: string | null
}

export interface AnsweredGroup {
  readonly task: string
  readonly rollouts: readonly AnsweredRollout[]
}

/**
 * The result of a rollout for a trainer. A failed rollout is data: its reward is null, not zero. `temperature`: the
 * temperature of the trainer, if given.
 */
export async function answered(response: TaskResponse, temperature: unknown): Promise<AnsweredRollout> {
  const trajectory = await response.toTrajectory()
  const { rows, refused } = rowsOf(trajectory, temperature)
  const { grade } = trajectory
  const failed = !response.success
  return {
    trajectory: trajectory.id,
    rollout: trajectory.rollout,
    reward: failed ? null : rewardOf(trajectory),
    success: failed ? false : successOf(trajectory),
    parts: grade?.parts ?? null,
    error: response.success ? (grade?.error ?? null) : errorOf(response.error),
    num_turns: rows.reduce((most, row) => Math.max(most, row.num_turns), 0),
    ...{ rows, refused },
  }
}

const errorOf = ({ code, message }: { readonly code: string; readonly message: string }) => ({ code, message })

function rowsOf(trajectory: Trajectory, temperature: unknown): Pick<AnsweredRollout, 'rows' | 'refused'> {
  const samples = tokenSamples(trajectory, () => undefined)
  if ('one' in samples) return { rows: [], refused: `it ${samples.one}` }
  const refused = trajectory.steps.map((step) => whyInexact(step, temperature)).find((why) => why !== undefined)
  if (refused !== undefined) return { rows: [], refused }
  const rows = samples.map(({ row, promptLength, turns }) => ({
    prompt_ids: Array.from(row.ids.subarray(0, promptLength)),
    completion_ids: Array.from(row.ids.subarray(promptLength)),
    logprobs: Array.from(row.logProbs.subarray(promptLength)),
    env_mask: Array.from(row.mask.subarray(promptLength)),
    num_turns: turns,
  }))
  return { rows, refused: null }
}

/** Why the log-probabilities of a call are not exact; undefined if they are. */
function whyInexact(step: Step, wanted: unknown): string | undefined {
  if (step.kind !== 'model' || step.role !== 'agent' || step.tokens === null) return undefined
  const { tokens, sampling, index } = step
  if (tokens.constrained) return `step ${index} was decoded under a grammar or schema`
  if (wanted !== undefined && sampling.temperature !== wanted)
    return `step ${index} was sampled at temperature ${sampling.temperature}, but the request has ${wanted}; remove the temperature from the agent`
  if (tokens.of === 'processed' || sampling.temperature === 1) return undefined
  return `step ${index} was sampled at temperature ${sampling.temperature}, but its log-probabilities are without temperature; configure the server to return processed log-probabilities, and set \`model.logprobs\` to "processed"`
}
