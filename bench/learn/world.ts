import type { OpenPolicy } from 'manyworlds/agents'
import { randomFrom } from '../../dist/random.js'
import type { TrajectoryParts } from '../../dist/trajectory/trajectory.js'

/** A world in this process, with the numbers of the Gymnasium world of that name: to find settings without workers. */
export interface World<Observation> {
  readonly actions: readonly number[]
  /** The episode is cut short after so many steps. */
  readonly maxSteps: number
  reset(random: () => number): Observation
  step(observation: Observation, action: number, random: () => number): Stepped<Observation>
}

export interface Stepped<Observation> {
  readonly observation: Observation
  readonly reward: number
  readonly done: boolean
}

type Act = NonNullable<OpenPolicy['act']>

/** One episode of a version, as a trajectory. The same key gives the same episode. */
export function walk<Observation>(
  world: World<Observation>,
  act: Act,
  { seed, update, number, version }: { seed: number; update: number; number: number; version: number },
): TrajectoryParts {
  const key = { seed, purpose: 'run', task: `${update}`, visit: 0, rollout: number + 1 }
  const chances = randomFrom({ ...key, stream: 'world' })
  const random = randomFrom({ ...key, stream: 'policy' })
  const steps: TrajectoryParts['steps'][number][] = []
  let observation = world.reset(chances)
  let [reward, done] = [0, false]
  while (!done && steps.length < world.maxSteps) {
    const question = { observation, candidates: world.actions, mode: 'sample' as const, random }
    const { action, index, logProb, value } = act(question as never) as never as Choice
    const result = world.step(observation, action, chances)
    steps.push({
      ...{
        index: steps.length,
        atMs: 0,
        kind: 'action',
        observation,
        candidates: world.actions,
        action,
        choice: index,
      },
      ...{ logProb, mode: 'sample', policy: { name: 'policy', version }, reward: result.reward },
      ...(value !== undefined && { value }),
    })
    ;({ observation, done } = result)
    reward += result.reward
  }
  const task = `${number}`.padStart(6, '0')
  return {
    ...{ id: task, run: null, task, agent: 'agent', split: null, group: null, visit: update, rollout: 1, attempt: 1 },
    ...{ seed, branches: [], steps, finalObservation: observation, episode: { reward, success: null }, grade: null },
    ...{ ending: done ? { kind: 'terminated' } : { kind: 'truncated', by: 'environment' }, digest: null },
    ...{ usage: {}, ms: 0, meta: {} },
  }
}

interface Choice {
  readonly action: number
  readonly index: number
  readonly logProb: number
  readonly value?: number
}

/** The sum of the rewards of one greedy episode. */
export function score<Observation>(world: World<Observation>, act: Act, random: () => number): number {
  let observation = world.reset(random)
  let reward = 0
  for (let step = 0; step < world.maxSteps; step++) {
    const question = { observation, candidates: world.actions, mode: 'greedy' as const, random }
    const { action } = act(question as never) as never as Choice
    const result = world.step(observation, action, random)
    reward += result.reward
    if (result.done) break
    observation = result.observation
  }
  return reward
}
