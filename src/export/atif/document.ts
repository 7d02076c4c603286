/** The documents of ATIF v1.7, the Agent Trajectory Interchange Format. */
export const ATIF_VERSION = 'ATIF-v1.7'

export type Extra = Readonly<Record<string, unknown>>

export interface AtifTrajectory {
  readonly schema_version: string
  /** The id of the run. */
  readonly session_id?: string
  /** The id of this document. */
  readonly trajectory_id?: string
  readonly agent: AtifAgent
  readonly steps: readonly AtifStep[]
  readonly notes?: string
  readonly final_metrics?: AtifFinalMetrics
  readonly continued_trajectory_ref?: string
  readonly extra?: Extra
  readonly subagent_trajectories?: readonly AtifTrajectory[]
}

export interface AtifAgent {
  readonly name: string
  readonly version: string
  readonly model_name?: string
  readonly tool_definitions?: readonly object[]
  readonly extra?: Extra
}

export type AtifContent = string | readonly AtifPart[]

export type AtifPart =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'image'; readonly source: { readonly media_type: string; readonly path: string } }

/** `reasoning_content`, `tool_calls`, `metrics`, `model_name` and `reasoning_effort` are allowed only in steps of the agent. */
export interface AtifStep {
  /** Numbered from 1, without gaps. */
  readonly step_id: number
  readonly timestamp?: string
  readonly source: 'system' | 'user' | 'agent'
  readonly model_name?: string
  readonly reasoning_effort?: string | number
  readonly message: AtifContent
  readonly reasoning_content?: string
  readonly tool_calls?: readonly AtifCall[]
  readonly observation?: { readonly results: readonly AtifResult[] }
  readonly metrics?: AtifMetrics
  /** 0: no model was called. */
  readonly llm_call_count?: number
  /** Copied from another trajectory as context: not for training. */
  readonly is_copied_context?: boolean
  readonly extra?: Extra
}

export interface AtifCall {
  readonly tool_call_id: string
  readonly function_name: string
  readonly arguments: Readonly<Record<string, unknown>>
  readonly extra?: Extra
}

export interface AtifResult {
  /** A `tool_call_id` of the same step. Left out: the result belongs to no call. */
  readonly source_call_id?: string
  readonly content?: AtifContent
  readonly subagent_trajectory_ref?: readonly { readonly trajectory_id?: string; readonly [key: string]: unknown }[]
  readonly extra?: Extra
}

export interface AtifMetrics {
  readonly prompt_tokens?: number
  readonly completion_tokens?: number
  readonly cached_tokens?: number
  readonly cost_usd?: number
  /** All token ids of the prompt, including those of earlier steps. */
  readonly prompt_token_ids?: readonly number[]
  readonly completion_token_ids?: readonly number[]
  readonly logprobs?: readonly number[]
  readonly extra?: Extra
}

export interface AtifFinalMetrics {
  readonly total_prompt_tokens?: number
  readonly total_completion_tokens?: number
  readonly total_cached_tokens?: number
  readonly total_cost_usd?: number
  readonly total_steps?: number
  readonly extra?: Extra
}
