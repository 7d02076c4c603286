import type { ModelStep, Step } from '../trajectory/step.ts'
import { type TokenRow as Line, type TokenSpan, tokenRows } from '../trajectory/token-rows.ts'
import type { Trajectory } from '../trajectory/trajectory.ts'
import type { TokenRow } from './row.ts'

/** Tokens of a trajectory that its policy has sampled, and that can be learned from. */
export interface TokenLines {
  readonly lines: readonly TokenLine[]
  /** Calls of the policy that nothing is learned from, by reason. */
  readonly refused: readonly string[]
  /** How often the tokens of a reply came back as others. */
  readonly drifted: number
}

/** One conversation. The mask is 1 where a token is trained. */
export interface TokenLine {
  readonly ids: Int32Array
  readonly mask: Uint8Array
  readonly logProbs: Float64Array
  readonly temperature: number
  /** The oldest version that acted in it. */
  readonly version: number
  /** How many tokens are trained. */
  readonly count: number
}

/**
 * What of a trajectory is learned from: what its policy sampled, with the log-probabilities of that very sampler. Other models in it are
 * context. Whatever the learner could not compute in the same way is refused, with the reason, and never guessed.
 */
export function tokenLines({ steps, branches }: Pick<Trajectory, 'steps' | 'branches'>): TokenLines {
  const { rows, refused } = tokenRows({ steps })
  const isOfPolicy = (index: number) => callOfPolicy(steps, index) !== undefined
  const reasons = refused.filter(({ step }) => isOfPolicy(step)).map(({ why }) => why)
  const lines = rows.flatMap((row) => {
    const { line, refused } = lineOf(row, steps)
    reasons.push(...refused)
    return line === undefined ? [] : [line]
  })
  const drifted = branches.filter(({ parent }) => parent?.why === 'drift').length
  return { lines, refused: [...reasons, ...withoutTokens(steps)], drifted }
}

/** The row of a line: each of its tokens has the same advantage and the same weight. */
export function tokenRow(line: TokenLine, advantage: number, weight: number): TokenRow {
  const { ids, mask, logProbs: behaviour, temperature, version } = line
  const filled = (value: number) => Float64Array.from(mask, (isTrained) => (isTrained === 1 ? value : 0))
  return {
    kind: 'tokens',
    ids,
    mask,
    behaviour,
    advantage: filled(advantage),
    weight: filled(weight),
    temperature,
    version,
  }
}

function lineOf(row: Line, steps: readonly Step[]): { line: TokenLine | undefined; refused: string[] } {
  const refused: string[] = []
  const mask = new Uint8Array(row.ids.length)
  let [count, version, temperature] = [0, Number.POSITIVE_INFINITY, Number.NaN]
  for (const span of row.spans) {
    const step = span.isTrained ? callOfPolicy(steps, span.step) : undefined
    if (step === undefined || step.policy === null) continue
    const why = whyNot(step, span, temperature)
    if (why !== undefined) {
      refused.push(`step ${span.step} ${why}`)
      continue
    }
    mask.fill(1, span.start, span.end)
    count += span.end - span.start
    version = Math.min(version, step.policy.version)
    temperature = span.temperature
  }
  const { ids, logProbs } = row
  return { line: count === 0 ? undefined : { ids, mask, logProbs, temperature, version, count }, refused }
}

function callOfPolicy(steps: readonly Step[], index: number): (Step & ModelStep) | undefined {
  const step = steps[index]
  return step?.kind === 'model' && step.role === 'agent' && step.policy !== null ? step : undefined
}

/** Those that `tokenRows` does not know of. */
function* withoutTokens(steps: readonly Step[]): Generator<string> {
  for (const { index } of steps) {
    const step = callOfPolicy(steps, index)
    if (step && step.tokens === null && step.redacted !== true)
      yield `step ${index} has no token ids: its server does not return them, or was not asked to (\`tokens\` of the model)`
  }
}

/** Why the learner would compute something else than what was sampled from; undefined: it would not. */
function whyNot({ tokens, sampling }: ModelStep, { temperature }: TokenSpan, others: number): string | undefined {
  const { topP, topK, minP, other } = sampling
  const { presence_penalty, frequency_penalty, repetition_penalty, logit_bias } = (other ?? {}) as Record<
    string,
    unknown
  >
  if (temperature === 0) return 'was chosen at temperature 0, which tries nothing else'
  if (tokens!.constrained)
    return 'was decoded under a grammar or schema: its log-probabilities are not those of the model alone'
  if ((topP !== null && topP < 1) || (topK !== null && topK > 0) || (minP !== null && minP > 0))
    return 'was sampled from a part of the distribution (top_p, top_k or min_p); the learner computes with the whole'
  if ((repetition_penalty ?? 1) !== 1 || (presence_penalty ?? 0) !== 0 || (frequency_penalty ?? 0) !== 0 || logit_bias)
    return 'was sampled with penalties, which the learner does not compute'
  if (tokens!.of === 'raw' && temperature !== 1)
    return `was sampled at temperature ${temperature}, and its log-probabilities are those before temperature: have the server give processed ones, and say \`tokens: 'processed'\``
  if (!Number.isNaN(others) && temperature !== others)
    return `was sampled at temperature ${temperature}, and others of its conversation at ${others}`
  return undefined
}
