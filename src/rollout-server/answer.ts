import { tokenSamples } from '../export/experience/token-samples.ts'
import { judgementOfTrajectory, refusedCalls } from '../grade/judgement.ts'
import type { TaskResponse } from '../task.ts'
import type { ModelStep, Step } from '../trajectory/step.ts'
import type { UntrainableCode } from '../trajectory/trainable.ts'
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

/** `sampling` of the request. */
type AskedSampling = Readonly<Record<string, unknown>>

/** The result of a rollout for a trainer. A failed rollout is data: its reward is null, not zero. */
export async function answered(response: TaskResponse, sampling: AskedSampling = {}): Promise<AnsweredRollout> {
  const trajectory = await response.toTrajectory()
  const { rows, refused } = rowsOf(trajectory, sampling)
  const { grade } = trajectory
  const { reward, solved, basis } = judgementOfTrajectory(trajectory)
  return {
    trajectory: trajectory.id,
    rollout: trajectory.rollout,
    reward,
    success: basis === 'trust' ? null : solved,
    parts: grade?.parts ?? null,
    error: response.success ? (grade?.error ?? null) : errorOf(response.error),
    num_turns: rows.reduce((most, row) => Math.max(most, row.num_turns), 0),
    ...{ rows, refused },
  }
}

const errorOf = ({ code, message }: { readonly code: string; readonly message: string }) => ({ code, message })

function rowsOf(trajectory: Trajectory, sampling: AskedSampling): Pick<AnsweredRollout, 'rows' | 'refused'> {
  const allowed = askedFor(sampling)
  const samples = tokenSamples(trajectory, () => undefined, allowed)
  const [call] = refusedCalls(trajectory, allowed)
  if ('one' in samples)
    return { rows: [], refused: isFinished(trajectory) && call ? `step ${call.step} ${call.why}` : `it ${samples.one}` }
  const refused = otherTemperature(trajectory, sampling)
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

const isFinished = ({ ending }: Trajectory) => ending.kind !== 'failed' && ending.kind !== 'cancelled'

/** A call that was sampled at another temperature than the trainer computes with. */
function otherTemperature({ steps }: Trajectory, { temperature: wanted }: AskedSampling): string | undefined {
  if (wanted === undefined) return undefined
  const other = steps.find(
    (step) => step.kind === 'model' && step.role === 'agent' && step.sampling.temperature !== wanted,
  ) as (Step & ModelStep) | undefined
  return (
    other &&
    `step ${other.index} was sampled at temperature ${other.sampling.temperature}, but the request has ${wanted}; remove the temperature from the agent`
  )
}

const TRUNCATING = ['top_p', 'top_k', 'min_p']
const PENALIZING = ['presence_penalty', 'frequency_penalty', 'repetition_penalty', 'logit_bias']

/** A trainer knows how it samples: what it asks for in its own request is no reason to refuse its rows. */
function askedFor(sampling: AskedSampling): UntrainableCode[] {
  const has = (names: readonly string[]) => names.some((name) => sampling[name] !== undefined)
  return [
    ...(sampling.temperature === 0 ? (['GREEDY'] as const) : []),
    ...(has(TRUNCATING) ? (['TRUNCATED'] as const) : []),
    ...(has(PENALIZING) ? (['PENALTIES'] as const) : []),
  ]
}
