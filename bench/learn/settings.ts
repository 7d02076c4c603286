import { neuralPolicy, softmaxPolicy, type TrainingAlgorithm } from 'manyworlds/train'

/** How a world is learned: the same in this process (tune.ts) and through Gymnasium (gymnasium.ts). */
export interface LearnSettings {
  readonly episodesPerUpdate: number
  readonly updatesPerCheck: number
  readonly mostUpdates: number
  readonly algorithm: TrainingAlgorithm & Required<Pick<TrainingAlgorithm, 'loss' | 'lr' | 'advantages'>>
}

export const cartPolicy = neuralPolicy<readonly number[], number>({ name: 'cart', inputs: 4, actions: [0, 1] })

/** PPO, as the policy has it by default. */
export const CART_POLE: LearnSettings = {
  ...{ episodesPerUpdate: 16, updatesPerCheck: 1, mostUpdates: 80 },
  algorithm: {
    ...{ loss: { name: 'clip' }, advantages: cartPolicy.learning.advantages!, lr: cartPolicy.learning.lr },
    ...cartPolicy.learning.algorithm,
  },
}

/** PPO on a table. Without much entropy it takes the first way that sometimes leads to the goal, and stays with it. */
export const FROZEN_LAKE: LearnSettings = {
  ...{ episodesPerUpdate: 128, updatesPerCheck: 4, mostUpdates: 240 },
  algorithm: {
    advantages: { name: 'gae', discount: 0.99, lambda: 0.8, normalize: true },
    loss: { name: 'clip', value: 1, entropy: 0.08 },
    ...{ lr: 0.05, epochs: 8 },
  },
}

export const lakePolicy = softmaxPolicy<number, number>({
  name: 'lake',
  bits: 10,
  features: (square, action) => [`${square} ${action}`],
  value: (square) => [`${square}`],
})
