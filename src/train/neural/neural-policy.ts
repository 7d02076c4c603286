import type { Choice, OpenPolicy, Policy, PolicyLearning, Question } from '../../agents/policy.ts'
import { blobOf, checkCandidates, choose } from '../choose.ts'
import type { GradientCore, LearnerHost } from '../learner.ts'
import { Network } from './network.ts'
import type { NeuralCoreOptions } from './neural-core.ts'
import { type NeuralOptions, type NeuralSettings, neuralSettings } from './settings.ts'
import { unpackWeights } from './weights.ts'

/** The part of a question that `act` of a neural policy uses. */
export type NeuralQuestion<Observation, Action> = Pick<
  Question<Observation, Action>,
  'observation' | 'candidates' | 'mode' | 'random'
>

/** An opened version of a neural policy. `act` is synchronous. */
export interface OpenNeuralPolicy<Observation = unknown, Action = unknown> extends OpenPolicy<Observation, Action> {
  act(question: NeuralQuestion<Observation, Action>): Choice<Action>
}

/** A policy that chooses from candidates with a neural network. */
export interface NeuralPolicy<Observation = unknown, Action = unknown> extends Policy<Observation, Action> {
  readonly core: 'neural'
  readonly options: NeuralOptions<Observation, Action>
  readonly settings: NeuralSettings
  /** Opens a version by its bytes; null: the untrained one, which chooses uniformly. */
  openBytes(bytes: Uint8Array | null): OpenNeuralPolicy<Observation, Action>
  /** PPO with a value head, else GRPO; needs the package `@jax-js/jax`. */
  readonly learning: Omit<PolicyLearning, 'core'> & {
    core(options?: NeuralCoreOptions & Partial<LearnerHost>): Promise<GradientCore>
  }
}

/** CartPole is learned with these settings for every seed tried: see bench/learn/tune.ts. */
const LR = 3e-3
const WITH_VALUE: Pick<PolicyLearning, 'advantages' | 'algorithm'> = {
  advantages: { name: 'gae', discount: 0.99, lambda: 0.95, normalize: true },
  algorithm: { loss: { name: 'clip', value: 0.5 }, epochs: 10, miniBatches: 8 },
}

/**
 * A policy that chooses with a neural network and, unless `value` is false, has a second network that predicts the return. It acts in plain TypeScript:
 * with the same weights, log-probabilities and values are bit-identical on every machine. Until it is trained, it chooses uniformly. Training needs the
 * package `@jax-js/jax`.
 *
 * @example
 * const policy = neuralPolicy<number[], number>({ name: 'balance', inputs: 4, actions: [0, 1] })
 * const agent = stepAgent({ name: 'balancer', environment: cartPole, policy, maxSteps: 500 })
 */
export function neuralPolicy<Observation = unknown, Action = unknown>(
  options: NeuralOptions<Observation, Action>,
): NeuralPolicy<Observation, Action> {
  const settings = neuralSettings(options as NeuralOptions)
  const { name = 'neural' } = options
  const openBytes = (bytes: Uint8Array | null) => openNeural<Observation, Action>(name, options, settings, bytes)
  const policy: NeuralPolicy<Observation, Action> = {
    ...{ core: 'neural', name, options, settings, openBytes },
    async open(ref, host) {
      const sha256 = blobOf(ref, 'neural')
      return openBytes(sha256 === null ? null : await host.blob(sha256))
    },
    learning: {
      core: async (given) => (await import('./neural-core.ts')).neuralCore(policy, given),
      lr: LR,
      ...(settings.hasValue && WITH_VALUE),
    },
  }
  return policy
}

function openNeural<Observation, Action>(
  name: string,
  options: NeuralOptions<Observation, Action>,
  settings: NeuralSettings,
  bytes: Uint8Array | null,
): OpenNeuralPolicy<Observation, Action> {
  const network = new Network(name, options as NeuralOptions, settings)
  const weights = bytes === null ? network.firstWeights() : unpackWeights(bytes, settings, name)
  return {
    act({ observation, candidates, mode, random }) {
      checkCandidates(candidates, name)
      network.read(observation, candidates)
      const choice = choose(candidates, network.logProbs(weights), mode, random)
      const value = network.valueOf(weights)
      return value === undefined ? choice : { ...choice, value }
    },
  }
}
