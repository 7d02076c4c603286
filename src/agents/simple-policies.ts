import { TaskError } from '../errors.ts'
import type { Policy } from './policy.ts'

/**
 * A policy that always chooses the same: an action, or the result of a function of the observation and the candidates. Its
 * probability is 1, so its log-probability is 0.
 *
 * @example
 * const agent = stepAgent({ name: 'up', environment, policy: fixedPolicy((at: number) => (at < 3 ? 'up' : 'down')) })
 */
export function fixedPolicy<Observation = unknown, const Action = unknown>(
  choose: Action | ((observation: Observation, candidates: readonly Action[] | undefined) => Action),
  name = 'fixed',
): Policy<Observation, Action> {
  const chosen =
    typeof choose === 'function'
      ? (choose as (observation: Observation, candidates: readonly Action[] | undefined) => Action)
      : () => choose
  return {
    name,
    open: () => ({ act: ({ observation, candidates }) => ({ action: chosen(observation, candidates), logProb: 0 }) }),
  }
}

/** A policy that chooses each candidate with the same probability. It fits every environment that lists candidates. */
export function randomPolicy(name = 'random'): Policy<unknown, never> {
  return {
    name,
    open: () => ({
      act({ candidates, random }) {
        if (candidates === undefined)
          throw new TaskError(
            'ACTION_INVALID',
            `policy '${name}' needs candidates, but the environment lists none; return \`candidates\` from reset and step`,
          )
        const index = Math.floor(random() * candidates.length)
        return { action: candidates[index]!, index, logProb: -Math.log(candidates.length) }
      },
    }),
  }
}
