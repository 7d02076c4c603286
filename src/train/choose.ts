import type { Choice, PolicyMode, PolicyRef } from '../agents/policy.ts'
import { ManyworldsError, TaskError } from '../errors.ts'
import { exp } from './exact-math.ts'

/**
 * Draws a candidate by its log-probability. Mode `'greedy'`: takes the most probable one, the first of equals, with
 * probability 1.
 */
export function choose<Action>(
  candidates: readonly Action[],
  logProbs: Float64Array,
  mode: PolicyMode,
  random: () => number,
): Choice<Action> & { readonly index: number } {
  const index = mode === 'greedy' ? best(logProbs) : draw(logProbs, random())
  return { action: candidates[index]!, index, logProb: mode === 'greedy' ? 0 : logProbs[index]! }
}

export function checkCandidates<Action>(
  candidates: readonly Action[] | undefined,
  policy: string,
): asserts candidates is readonly Action[] {
  if (candidates === undefined || candidates.length === 0)
    throw new TaskError(
      'ACTION_INVALID',
      `policy '${policy}' chooses from candidates, but the environment provided none; return \`candidates\` from its reset and step`,
    )
}

/**
 * The blob with the weights of a version; null: the version is untrained. `kind`: the kind of policy, for the message.
 */
export function blobOf({ policy, version, at }: PolicyRef, kind: string): string | null {
  if (at === null) return null
  if ('blob' in at) return at.blob
  throw new ManyworldsError(
    'POLICY_INVALID',
    `version ${version} of policy '${policy}' is a served model; a ${kind} policy needs its weights in a blob`,
  )
}

function best(logProbs: Float64Array): number {
  let found = 0
  for (let i = 1; i < logProbs.length; i++) if (logProbs[i]! > logProbs[found]!) found = i
  return found
}

function draw(logProbs: Float64Array, at: number): number {
  let sum = 0
  let last = 0
  for (let i = 0; i < logProbs.length; i++) {
    const probability = exp(logProbs[i]!)
    if (probability === 0) continue
    sum += probability
    last = i
    if (at < sum) return i
  }
  // Because of rounding, the sum may be slightly below 1.
  return last
}
