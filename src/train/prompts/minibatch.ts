import { randomFrom } from '../../random.ts'
import { shuffled } from '../pipeline/sampler.ts'

/**
 * The tasks of an iteration, which is numbered from 1. Passes through all tasks in an order that is reshuffled for each
 * pass; the last batch of a pass is filled with tasks from its start, so that all have the same size. Depends only on
 * its arguments, so nothing has to be stored.
 */
export function minibatch(tasks: readonly string[], size: number, iteration: number, seed: number | string): string[] {
  const count = Math.min(size, tasks.length)
  const perPass = Math.ceil(tasks.length / count)
  const pass = Math.floor((iteration - 1) / perPass)
  const random = randomFrom({ seed, purpose: 'prompts', stream: 'minibatch', task: '', visit: pass, rollout: 1 })
  const order = shuffled(tasks, random)
  const begin = ((iteration - 1) % perPass) * count
  return Array.from({ length: count }, (_, i) => order[(begin + i) % order.length]!)
}
