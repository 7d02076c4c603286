import { defineEnvironment, stepAgent } from 'manyworlds/agents'
import { neuralPolicy } from 'manyworlds/train'
import { cartPole } from '../../bench/learn/cart-pole.ts'

const candidates = cartPole.actions

/** CartPole without Python. Its limit of steps is the agent's. */
const cart = defineEnvironment({
  name: 'cart',
  reset: (_task: unknown, { random }) => {
    const observation = cartPole.reset(random)
    return { state: { observation }, observation, candidates }
  },
  step: (state: { observation: readonly number[] }, action: number, { random }) => {
    const result = cartPole.step(state.observation, action, random)
    state.observation = result.observation
    return { ...result, candidates }
  },
})

export const balancingLearner = stepAgent({
  name: 'balancing-learner',
  environment: cart,
  policy: neuralPolicy<readonly number[], number>({ name: 'balance', inputs: 4, actions: candidates }),
  maxSteps: cartPole.maxSteps,
})
