import type { ModelStep, Step } from '../../trajectory/step.ts'
import { hasTokens } from '../../trajectory/token-rows.ts'
import type { Usage } from '../../trajectory/usage.ts'
import type { AtifFinalMetrics, AtifMetrics, AtifStep } from './document.ts'

/** The ATIF metrics of a model step. Counts that are not whole numbers are dropped. */
export function metricsOf(steps: readonly Step[], step: Step & ModelStep): AtifMetrics {
  const { usage = {}, sampling } = step
  const { temperature, topP, topK, minP } = sampling
  const asked = given({ temperature, top_p: topP, top_k: topK, min_p: minP })
  return {
    ...countsOf(usage),
    ...tokensOf(steps, step),
    ...(Object.keys(asked).length > 0 && { extra: asked }),
  }
}

export const countsOf = ({ inputTokens, outputTokens, cachedTokens, costUsd }: Usage): AtifMetrics => ({
  ...given({
    prompt_tokens: whole(inputTokens),
    completion_tokens: whole(outputTokens),
    cached_tokens: whole(cachedTokens),
    cost_usd: Number.isFinite(costUsd) ? costUsd : undefined,
  }),
})

const whole = (value: number | undefined) => (Number.isSafeInteger(value) ? value : undefined)

/** The token ids. A redacted step has none, and a prompt has none if the server did not return them. */
export function tokensOf(steps: readonly Step[], step: Step & ModelStep): AtifMetrics {
  if (!hasTokens(step)) return {}
  const { completion, logProbs } = step.tokens
  const prompt = promptIds(steps, step)
  return {
    ...(prompt && { prompt_token_ids: prompt }),
    completion_token_ids: Array.from(completion),
    // JSON cannot represent infinities.
    ...(logProbs?.every(Number.isFinite) && { logprobs: Array.from(logProbs) }),
  }
}

/** The token ids of a prompt: those of the step that it continues, including its completion, and its own. Undefined: unknown. */
export function promptIds(steps: readonly Step[], step: Step & ModelStep): number[] | undefined {
  const line: (Step & ModelStep)[] = []
  for (let at: Step | undefined = step; ; ) {
    if (at === undefined || !hasTokens(at) || at.tokens.promptUnknown) return undefined
    line.push(at)
    const { from } = at.tokens
    if (from === null) break
    // A step can only continue an earlier one, so this loop ends.
    at = from < at.index ? steps[from] : undefined
  }
  return line.reverse().flatMap((one) => [...one.tokens!.tail, ...(one === step ? [] : one.tokens!.completion)])
}

/** The sums over the steps of the document itself. */
export function finalMetrics(steps: readonly AtifStep[]): AtifFinalMetrics {
  const sum = (key: 'prompt_tokens' | 'completion_tokens' | 'cached_tokens' | 'cost_usd') => {
    const values = steps.flatMap(({ metrics }) => metrics?.[key] ?? [])
    return values.length === 0 ? undefined : values.reduce((a, b) => a + b, 0)
  }
  return {
    ...given({
      total_prompt_tokens: sum('prompt_tokens'),
      total_completion_tokens: sum('completion_tokens'),
      total_cached_tokens: sum('cached_tokens'),
      total_cost_usd: sum('cost_usd'),
    }),
    total_steps: steps.length,
  }
}

/** Removes fields that are undefined or null. */
export const given = <T extends object>(fields: T): { [Key in keyof T]?: NonNullable<T[Key]> } =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined && value !== null)) as {
    [Key in keyof T]?: NonNullable<T[Key]>
  }
