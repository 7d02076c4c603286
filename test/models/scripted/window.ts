/** A rate limit: so many requests, so many tokens, in any stretch of time of this length. */
export interface WindowOptions {
  readonly requests?: number
  readonly tokens?: number
  /** Default: 1000. */
  readonly ms?: number
  /** What a 429 says about when to come back. Default: `ms`. */
  readonly retryAfter?: 'ms' | 'seconds' | 'none'
}

/** Undefined: let in, and counted. Else when the first of those that are counted leaves the window. */
type Admit = (tokens: number, now: number) => { readonly afterMs: number } | undefined

export function slidingWindow({ requests, tokens: limit, ms = 1000 }: WindowOptions): Admit {
  const admitted: { readonly at: number; readonly tokens: number }[] = []
  let used = 0
  return (tokens, now) => {
    while (admitted.length > 0 && admitted[0]!.at <= now - ms) used -= admitted.shift()!.tokens
    const full =
      (requests !== undefined && admitted.length >= requests) || (limit !== undefined && used + tokens > limit)
    if (full) return { afterMs: admitted.length === 0 ? ms : Math.ceil(admitted[0]!.at + ms - now) }
    admitted.push({ at: now, tokens })
    used += tokens
    return undefined
  }
}

export function retryHeaders(afterMs: number, { retryAfter = 'ms' }: WindowOptions): Record<string, string> {
  if (retryAfter === 'none') return {}
  const seconds = { 'retry-after': String(Math.ceil(afterMs / 1000)) }
  return retryAfter === 'seconds' ? seconds : { ...seconds, 'retry-after-ms': String(afterMs) }
}
