import type { ModelStep } from './step.ts'

/**
 * Which model calls may be trained on: the only definition. Rows of tokens, exports, the rollout server and trainings ask it, so
 * a call that a training refuses is not in an exported file either.
 *
 * A learner needs the exact tokens of the call, and log-probabilities that it can compute again: those of the model's full
 * distribution at the temperature of the call. A call that does not have them is refused with a reason, never guessed.
 */
export type UntrainableCode =
  | 'REDACTED'
  | 'NO_TOKENS'
  | 'NO_PROMPT'
  | 'NO_LOG_PROBS'
  | 'WRONG_LOG_PROBS'
  | 'NO_TEMPERATURE'
  | 'GREEDY'
  | 'CONSTRAINED'
  | 'TRUNCATED'
  | 'PENALTIES'
  | 'RAW_LOG_PROBS'

/** Why a model call may not be trained on. */
export interface Untrainable {
  readonly code: UntrainableCode
  /** Continues "step 3 …". */
  readonly why: string
}

type Call = Pick<ModelStep, 'tokens' | 'sampling' | 'redacted'>

/**
 * Why a call may not be trained on; undefined: it may. The most useful reason comes first: a redacted step has no tokens either.
 * It does not look at the caller: calls of judges and simulated users are never trained on. `allowed`: reasons that do not count.
 */
export const whyUntrainable = (call: Call, allowed: readonly UntrainableCode[] = []): Untrainable | undefined =>
  [...reasons(call)].find(({ code }) => !allowed.includes(code))

function* reasons({ tokens, sampling, redacted }: Call): Generator<Untrainable> {
  if (redacted === true)
    return yield because('REDACTED', 'contained secrets, which were removed together with its tokens')
  if (tokens === null)
    return yield because(
      'NO_TOKENS',
      'has no token ids: the server does not return them, or they were not requested (`tokens` of the model)',
    )
  const { completion, logProbs, promptUnknown, constrained, of } = tokens
  const { temperature, topP, topK, minP } = sampling
  if (promptUnknown) yield because('NO_PROMPT', 'has no token ids of its prompt: the server does not return them')
  if (logProbs === null) yield because('NO_LOG_PROBS', 'has no log-probabilities: the server did not return them')
  else if (logProbs.length !== completion.length)
    yield because('WRONG_LOG_PROBS', `has ${logProbs.length} log-probabilities for ${completion.length} tokens`)
  if (temperature === null)
    yield because('NO_TEMPERATURE', 'was sampled at an unknown temperature: the call did not set one')
  if (temperature === 0) yield because('GREEDY', 'was sampled at temperature 0, which does not explore')
  if (constrained)
    yield because(
      'CONSTRAINED',
      'was decoded under a grammar or schema: its log-probabilities are not those of the model alone',
    )
  if ((topP !== null && topP < 1) || (topK !== null && topK > 0) || (minP !== null && minP > 0))
    yield because(
      'TRUNCATED',
      'was sampled from a truncated distribution (top_p, top_k or min_p), but a learner computes the full distribution',
    )
  if (isBiased(sampling.other))
    yield because('PENALTIES', 'was sampled with penalties or a logit bias, which a learner does not compute')
  if (of === 'raw' && temperature !== null && temperature !== 1)
    yield because(
      'RAW_LOG_PROBS',
      `was sampled at temperature ${temperature}, but its log-probabilities are without temperature: configure the server to return processed log-probabilities, and say so (\`tokens: 'processed'\` of the model; for the rollout server, \`model.logprobs: "processed"\`)`,
    )
}

const because = (code: UntrainableCode, why: string): Untrainable => ({ code, why })

/** Parameters that change the distribution, with the value that does not. */
const NEUTRAL: Readonly<Record<string, number>> = {
  presence_penalty: 0,
  frequency_penalty: 0,
  repetition_penalty: 1,
}

function isBiased(other: unknown): boolean {
  const given = (other ?? {}) as Readonly<Record<string, unknown>>
  if (Object.entries(NEUTRAL).some(([name, neutral]) => (given[name] ?? neutral) !== neutral)) return true
  return Object.keys(given.logit_bias ?? {}).length > 0
}
