import { rewardOf, successOf } from '../export/experience/selection.ts'
import { tokenSamples } from '../export/experience/token-samples.ts'
import type { TaskResponse } from '../task.ts'
import type { Step } from '../trajectory/step.ts'
import type { Trajectory } from '../trajectory/trajectory.ts'

/** A row of tokens; the names are those of TRL. */
export interface AnsweredRow {
  readonly prompt_ids: readonly number[]
  /** All that follows the prompt: completions, and what came between them. */
  readonly completion_ids: readonly number[]
  /** Of the sampler; 0 where the mask is 0. */
  readonly logprobs: readonly number[]
  /** 1: the agent's model sampled the token; 0: it came from tools or others. */
  readonly env_mask: readonly number[]
  /** Messages of the conversation, without those of the system. */
  readonly num_turns: number
}

export interface AnsweredRollout {
  /** The id of the trajectory in its run. */
  readonly trajectory: string
  /** From 1. */
  readonly rollout: number
  /** Null: it failed, or nobody can tell. */
  readonly reward: number | null
  readonly success: boolean | null
  readonly parts: Readonly<Record<string, { readonly value: number; readonly weight: number }>> | null
  readonly error: { readonly code: string; readonly message: string } | null
  readonly num_turns: number
  /** Empty if it failed, or if `refused` says why its tokens cannot be trained. */
  readonly rows: readonly AnsweredRow[]
  readonly refused: string | null
}

export interface AnsweredGroup {
  readonly task: string
  readonly rollouts: readonly AnsweredRollout[]
}

/**
 * What came of a rollout, for a trainer. One that failed is data: it has no reward, and no zero in its place. `temperature`: what the trainer
 * computes with, if it says so.
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

/** Why the log-probabilities of a call are not those of what it was sampled from; undefined: they are. */
function whyInexact(step: Step, wanted: unknown): string | undefined {
  if (step.kind !== 'model' || step.role !== 'agent' || step.tokens === null) return undefined
  const { tokens, sampling, index } = step
  if (tokens.constrained) return `step ${index} was decoded under a grammar or schema`
  if (wanted !== undefined && sampling.temperature !== wanted)
    return `step ${index} was sampled at temperature ${sampling.temperature}, and the request says ${wanted}: the agent has one of its own`
  if (tokens.of === 'processed' || sampling.temperature === 1) return undefined
  return `step ${index} was sampled at temperature ${sampling.temperature}, and its log-probabilities are those before temperature: have the server give processed ones, and say so with \`model.logprobs\``
}
