import type { Choice, PolicyMode, PolicyRef } from '../agents/policy.ts'
import { ManyworldsError, TaskError } from '../errors.ts'
import { exp } from './exact-math.ts'

/** A candidate by its log-probability or, in mode `'greedy'`, the best one, the first of equals, with the probability 1. */
export function choose<Action>(
  candidates: readonly Action[],
  logProbs: Float64Array,
  mode: PolicyMode,
  random: () => number,
): Choice<Action> & { readonly index: number } {
  const index = mode === 'greedy' ? best(logProbs) : draw(logProbs, random())
  return { action: candidates[index]!, index, logProb: mode === 'greedy' ? 0 : logProbs[index]! }
}

/** `policy`: its name. */
export function checkCandidates<Action>(
  candidates: readonly Action[] | undefined,
  policy: string,
): asserts candidates is readonly Action[] {
  if (candidates === undefined || candidates.length === 0)
    throw new TaskError(
      'ACTION_INVALID',
      `policy '${policy}' chooses among candidates, and the environment lists none; have reset and step return \`candidates\``,
    )
}

/** Where the weights of a version are; null: it has learned nothing. `kind`: of the policy, for the message. */
export function blobOf({ policy, version, at }: PolicyRef, kind: string): string | null {
  if (at === null) return null
  if ('blob' in at) return at.blob
  throw new ManyworldsError(
    'POLICY_INVALID',
    `version ${version} of policy '${policy}' is a model that is served; a ${kind} policy has its weights in a blob`,
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
  // By rounding the sum may be a little less than 1.
  return last
}
