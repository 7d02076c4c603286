import type { Environment, Plain } from '../environment.ts'
import { type GymnasiumOptions, type GymnasiumTask, type GymnasiumWorld, gymnasiumWorld } from './gymnasium.ts'
import { type ReasoningGymOptions, type ReasoningGymTask, reasoningGymWorld } from './reasoning-gym.ts'
import { invalid, shown } from './world-options.ts'

/**
 * Wraps a Python world as an environment for `stepAgent`. Call it at the top level of a module: it runs in workers, on every
 * engine. Each worker runs all its episodes in one Python process, whose environment is set up with uv on first use.
 *
 * @example
 * const lake = pythonWorld<number, number>({ kind: 'gymnasium', id: 'FrozenLake-v1', kwargs: { is_slippery: false } })
 * const walker = stepAgent({ name: 'walker', environment: lake, policy: randomPolicy(), maxSteps: 100 })
 * const responses = await Runners.runTask([walker.task({ seed: 1 }), walker.task({ seed: 2 })])
 */
export function pythonWorld<Observation = unknown, Action extends Plain = Plain>(
  options: GymnasiumOptions,
): GymnasiumWorld<Observation, Action>
export function pythonWorld(options: ReasoningGymOptions): Environment<ReasoningGymTask, string, string>
export function pythonWorld(
  options: GymnasiumOptions | ReasoningGymOptions,
): Environment<GymnasiumTask> | Environment<ReasoningGymTask, string, string> {
  switch (options?.kind) {
    case 'gymnasium':
      return gymnasiumWorld(options)
    case 'reasoning-gym':
      return reasoningGymWorld(options)
    default:
      throw invalid(
        'pythonWorld',
        `\`kind\` must be 'gymnasium' or 'reasoning-gym', it is ${shown((options as { kind?: unknown } | undefined)?.kind)}`,
      )
  }
}
