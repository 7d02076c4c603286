import type { ModelStep, Step } from '../trajectory/step.ts'
import { type TokenRow as Line, type TokenSpan, tokenRows } from '../trajectory/token-rows.ts'
import { whyUntrainable } from '../trajectory/trainable.ts'
import type { Trajectory } from '../trajectory/trajectory.ts'
import type { TokenRow } from './row.ts'

/** The tokens of a trajectory that its policy sampled and that can be trained on. */
export interface TokenLines {
  readonly lines: readonly TokenLine[]
  /** The policy's calls that cannot be trained on, with the reason. */
  readonly refused: readonly string[]
  /** How often a reply came back with different tokens. */
  readonly drifted: number
}

/** One conversation. The mask is 1 where a token is trained on. */
export interface TokenLine {
  readonly ids: Int32Array
  readonly mask: Uint8Array
  readonly logProbs: Float64Array
  readonly temperature: number
  /** The oldest version that acted in it. */
  readonly version: number
  /** The number of tokens trained on. */
  readonly count: number
}

/**
 * Selects the tokens to train on: those that the policy sampled, with the log-probabilities of the same sampler. Tokens
 * of other models are context. Calls whose probabilities the learner could not reproduce are refused with a reason,
 * never guessed.
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

/** Makes a row from a line; all its tokens have the same advantage and weight. */
export function tokenRow(line: TokenLine, advantage: number, weight: number): TokenRow {
  const { ids, mask, logProbs: behavior, temperature, version } = line
  const filled = (value: number) => Float64Array.from(mask, (isTrained) => (isTrained === 1 ? value : 0))
  return {
    kind: 'tokens',
    ids,
    mask,
    behavior,
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
    const why = whyNot(span, temperature)
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

/** Calls without tokens, which `tokenRows` does not report unless they were redacted. */
function* withoutTokens(steps: readonly Step[]): Generator<string> {
  for (const { index } of steps) {
    const step = callOfPolicy(steps, index)
    if (step && step.tokens === null && step.redacted !== true) yield `step ${index} ${whyUntrainable(step)!.why}`
  }
}

/** A row has one temperature. */
const whyNot = ({ temperature }: TokenSpan, othersTemperature: number): string | undefined =>
  Number.isNaN(othersTemperature) || temperature === othersTemperature
    ? undefined
    : `was sampled at temperature ${temperature}, but other calls of its conversation at ${othersTemperature}`
