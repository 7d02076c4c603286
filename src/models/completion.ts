/** The fields of a server's reply that are used. All of it is untrusted: every field may be missing or wrong. */
export interface Completion {
  readonly id?: unknown
  readonly model?: unknown
  readonly choices?: readonly Choice[]
  readonly usage?: WireUsage | null
  readonly error?: unknown
  readonly prompt_token_ids?: unknown
  /** llama.cpp: among others, how many prompt tokens were cached. */
  readonly timings?: unknown
}

export interface Choice {
  readonly message?: WireReply
  /** OpenRouter: the upstream server failed. */
  readonly error?: unknown
  /** Of `/completions`. */
  readonly text?: unknown
  readonly finish_reason?: unknown
  readonly logprobs?: WireLogProbs | null
  /** vLLM, with `return_token_ids`. */
  readonly token_ids?: unknown
  readonly prompt_token_ids?: unknown
}

export interface WireReply {
  readonly content?: unknown
  readonly reasoning_content?: unknown
  readonly reasoning?: unknown
  readonly refusal?: unknown
  readonly tool_calls?: readonly WireToolCall[] | null
}

export interface WireToolCall {
  readonly id?: unknown
  readonly function?: { readonly name?: unknown; readonly arguments?: unknown }
}

export interface WireLogProbs {
  /** Of chat completions, and of `/completions` in llama.cpp. */
  readonly content?: readonly { readonly id?: unknown; readonly logprob?: unknown; readonly token?: unknown }[] | null
  /** Of `/completions`. */
  readonly token_logprobs?: readonly unknown[]
}

export interface WireUsage {
  readonly prompt_tokens?: unknown
  readonly completion_tokens?: unknown
  readonly total_tokens?: unknown
  readonly prompt_tokens_details?: { readonly cached_tokens?: unknown } | null
  readonly completion_tokens_details?: { readonly reasoning_tokens?: unknown } | null
}

/** The tokens of a call; undefined if the server does not report them. */
export interface TokenCount {
  readonly input: number | undefined
  readonly output: number | undefined
  readonly cached: number | undefined
  readonly reasoning: number | undefined
}

export function tokenCount(usage: WireUsage | null | undefined): TokenCount {
  return {
    input: count(usage?.prompt_tokens),
    output: count(usage?.completion_tokens),
    cached: count(usage?.prompt_tokens_details?.cached_tokens),
    reasoning: count(usage?.completion_tokens_details?.reasoning_tokens),
  }
}

export const count = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : undefined

export const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null

export function jsonObject(text: string): Completion | undefined {
  try {
    const value: unknown = JSON.parse(text.startsWith('\uFEFF') ? text.slice(1) : text)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Completion) : undefined
  } catch {
    return undefined
  }
}

/** The elements that are objects; empty if the value is not a list. */
export const listOf = <Element extends object>(value: readonly Element[] | null | undefined): Element[] =>
  Array.isArray(value) ? (value as Element[]).filter(isObject) : []

export const textOf = (value: unknown) => (typeof value === 'string' ? value : '')
