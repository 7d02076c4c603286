import type { Choice, OpenPolicy, Policy, PolicyLearning, Question } from '../../agents/policy.ts'
import { blobOf, checkCandidates, choose } from '../choose.ts'
import { DEFAULT_FEATURES } from './default-features.ts'
import { Scorer } from './scorer.ts'
import { checkSoftmax, type SoftmaxOptions, type SoftmaxSettings } from './settings.ts'
import { countWeights, unpackWeights } from './weights.ts'

/** The part of a question that `act` of a softmax policy uses. */
export type SoftmaxQuestion<Observation, Action> = Pick<
  Question<Observation, Action>,
  'observation' | 'candidates' | 'mode' | 'random'
>

/** An opened version of a softmax policy. `act` is synchronous. */
export interface OpenSoftmaxPolicy<Observation = unknown, Action = unknown> extends OpenPolicy<Observation, Action> {
  act(question: SoftmaxQuestion<Observation, Action>): Choice<Action>
}

/** A policy that chooses from candidates by linear scores of hashed features. */
export interface SoftmaxPolicy<Observation = unknown, Action = unknown> extends Policy<Observation, Action> {
  readonly core: 'softmax'
  readonly options: SoftmaxOptions<Observation, Action>
  readonly settings: SoftmaxSettings
  readonly learning: PolicyLearning
  /** Opens a version by its bytes; null: the untrained one, which chooses uniformly. */
  openBytes(bytes: Uint8Array | null): OpenSoftmaxPolicy<Observation, Action>
}

/**
 * A policy that scores each candidate by the sum of the weights of its features, and chooses by the softmax of the scores. Until it is trained, it
 * chooses uniformly. The log-probability of a choice is bit-identical on every machine. In mode `'greedy'`, the best candidate is chosen, the first of
 * equals, with probability 1.
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
  const policy: SoftmaxPolicy<Observation, Action> = {
    core: 'softmax',
    name,
    options,
    settings,
    openBytes,
    learning: {
      core: async () => (await import('./softmax-core.ts')).softmaxCore(policy),
      lr: LEARNING_RATE,
    },
    async open(ref, host) {
      const sha256 = blobOf(ref, 'softmax')
      return openBytes(sha256 === null ? null : await host.blob(sha256))
    },
  }
  return policy
}

/** The learning rate of Adam, for weights that start at 0 and scores that should soon differ by several units. */
const LEARNING_RATE = 0.05

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
      checkCandidates(candidates, name)
      scorer.read(observation, candidates)
      const choice = choose(candidates, scorer.logProbs(weights), mode, random)
      if (!settings.hasValue) return choice
      const begin = scorer.readValue(observation)
      return { ...choice, value: scorer.features.dot(valueWeights, begin, scorer.features.length) }
    },
  }
}
