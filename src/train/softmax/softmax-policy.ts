import type { Choice, OpenPolicy, Policy, PolicyRef, Question } from '../../agents/policy.ts'
import { ManyworldsError, TaskError } from '../../errors.ts'
import { exp } from '../exact-math.ts'
import { DEFAULT_FEATURES } from './default-features.ts'
import { Scorer } from './scorer.ts'
import { checkSoftmax, type SoftmaxOptions, type SoftmaxSettings } from './settings.ts'
import { countWeights, unpackWeights } from './weights.ts'

/** What `act` of a softmax policy needs of a question. */
export type SoftmaxQuestion<Observation, Action> = Pick<
  Question<Observation, Action>,
  'observation' | 'candidates' | 'mode' | 'random'
>

/** A version of a softmax policy. It answers at once. */
export interface OpenSoftmaxPolicy<Observation = unknown, Action = unknown> extends OpenPolicy<Observation, Action> {
  act(question: SoftmaxQuestion<Observation, Action>): Choice<Action>
}

/** A policy that chooses among candidates by linear scores of hashed features. */
export interface SoftmaxPolicy<Observation = unknown, Action = unknown> extends Policy<Observation, Action> {
  readonly options: SoftmaxOptions<Observation, Action>
  readonly settings: SoftmaxSettings
  /** Opens a version by its bytes; null: the one that has learned nothing, and chooses by chance. */
  openBytes(bytes: Uint8Array | null): OpenSoftmaxPolicy<Observation, Action>
}

/**
 * A policy that gives each candidate a score, the sum of the weights of its features, and chooses by the softmax of the scores. Until it
 * is trained it chooses by chance. The log-probability of a choice is the same, bit for bit, on every machine. In mode `'greedy'` the
 * best candidate is chosen, the first of equals, with the probability 1.
 *
 * @example
 * const policy = softmaxPolicy({ features: (room: string, door: string) => [door, `${room}>${door}`] })
 * const agent = stepAgent({ name: 'walker', environment: maze, policy })
 */
export function softmaxPolicy<Observation = unknown, Action = unknown>(
  options: SoftmaxOptions<Observation, Action> = {},
): SoftmaxPolicy<Observation, Action> {
  checkSoftmax(options)
  const { name = 'softmax', bits = 16, temperature = 1, features, value = false } = options
  const settings: SoftmaxSettings = {
    ...{ bits, temperature },
    features: features === undefined ? DEFAULT_FEATURES : 'own',
    hasValue: value !== false,
  }
  const openBytes = (bytes: Uint8Array | null) =>
    openSoftmax<Observation, Action>(
      name,
      options,
      settings,
      bytes === null ? new Float64Array(countWeights(settings)) : unpackWeights(bytes, settings, name),
    )
  return {
    name,
    options,
    settings,
    openBytes,
    async open(ref, host) {
      const sha256 = blobOf(ref)
      return openBytes(sha256 === null ? null : await host.blob(sha256))
    },
  }
}

function blobOf({ policy, version, at }: PolicyRef): string | null {
  if (at === null) return null
  if ('blob' in at) return at.blob
  throw new ManyworldsError(
    'POLICY_INVALID',
    `version ${version} of policy '${policy}' is a model that is served; a softmax policy has its weights in a blob`,
  )
}

function openSoftmax<Observation, Action>(
  name: string,
  options: SoftmaxOptions<Observation, Action>,
  settings: SoftmaxSettings,
  weights: Float64Array,
): OpenSoftmaxPolicy<Observation, Action> {
  const scorer = new Scorer(options as SoftmaxOptions, settings.bits)
  const valueWeights = weights.subarray(2 ** settings.bits)
  return {
    act({ observation, candidates, mode, random }) {
      if (candidates === undefined || candidates.length === 0)
        throw new TaskError(
          'ACTION_INVALID',
          `policy '${name}' chooses among candidates, and the environment lists none; have reset and step return \`candidates\``,
        )
      scorer.read(observation, candidates)
      const logProbs = scorer.logProbs(weights)
      const index = mode === 'greedy' ? best(logProbs) : draw(logProbs, random())
      const choice = { action: candidates[index]!, index, logProb: mode === 'greedy' ? 0 : logProbs[index]! }
      if (!settings.hasValue) return choice
      const begin = scorer.readValue(observation)
      return { ...choice, value: scorer.features.dot(valueWeights, begin, scorer.features.length) }
    },
  }
}

/** The first of the best. */
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
