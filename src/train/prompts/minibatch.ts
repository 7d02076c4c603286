import { randomFrom } from '../../random.ts'
import { shuffled } from '../pipeline/sampler.ts'

/**
 * The tasks of an iteration, from 1. All tasks are gone through, in an order that is shuffled anew each time; the last batch of a pass is
 * filled with tasks from the beginning of the pass, so that all have the same size. It depends on its arguments alone: nothing has to be stored.
 */
export function minibatch(tasks: readonly string[], size: number, iteration: number, seed: number | string): string[] {
  const count = Math.min(size, tasks.length)
  const perPass = Math.ceil(tasks.length / count)
  const pass = Math.floor((iteration - 1) / perPass)
  const random = randomFrom({ seed, purpose: 'prompts', stream: 'minibatch', task: '', visit: pass, rollout: 1 })
  const order = shuffled(tasks, random)
  const begin = ((iteration - 1) % perPass) * count
  return Array.from({ length: count }, (_, place) => order[(begin + place) % order.length]!)
}
