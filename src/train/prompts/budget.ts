import type { Usage } from '../../trajectory/usage.ts'
import type { LearnerTraining } from '../learner.ts'
import type { PromptSettings } from './prompt-options.ts'
import type { PromptState } from './prompt-state.ts'

type Spent = PromptState['spent']

/** Adds the cost of a run. Calls of a judge are not part of the cost of episodes. */
export function spend(before: Spent, episodes: readonly { readonly usage?: Usage }[]): Spent {
  const usd = episodes.reduce((sum, { usage }) => sum + (usage?.costUsd ?? 0), 0)
  return {
    ...before,
    evaluations: before.evaluations + episodes.length,
    usd: before.usd + usd,
    episodeUsd: Math.max(before.episodeUsd, episodes.length === 0 ? 0 : usd / episodes.length),
  }
}

type About = Pick<LearnerTraining, 'train' | 'validation' | 'rollouts' | 'testEpisodes'>

/** The maximum number of episodes of one iteration: the parent, the child, and the validation of the child. */
export function episodesOfIteration({ minibatch }: Pick<PromptSettings, 'minibatch'>, about: About): number {
  const { train, rollouts } = about
  return 2 * Math.min(minibatch, train.length) * rollouts.train + episodesOfValidation(about)
}

export const episodesOfValidation = ({ validation, rollouts }: About): number => validation.length * rollouts.validation

/**
 * Why no further iteration is started; undefined if one is. The budget of episodes is never exceeded, because an
 * iteration is started only if all of it fits. The budget of money is as good as its estimate, which uses the most
 * expensive runs so far and reserves the cost of the test.
 */
export function whyNoMore(
  { spent, pool }: PromptState,
  settings: Pick<PromptSettings, 'minibatch' | 'budget' | 'perfect'>,
  about: About,
): string | undefined {
  const { evaluations, usd } = settings.budget
  const needed = episodesOfIteration(settings, about)
  if (pool.some(({ scores }) => about.validation.every((task) => (scores[task] ?? 0) >= settings.perfect)))
    return `every validation task is solved after ${spent.evaluations} evaluations`
  if (evaluations !== undefined && spent.evaluations + needed > evaluations)
    return `${spent.evaluations} of ${evaluations} evaluations are used, and another iteration may need ${needed} more`
  const expected = (needed + about.testEpisodes) * spent.episodeUsd + spent.askUsd
  if (usd !== undefined && spent.usd + expected > usd)
    return `$${spent.usd.toPrecision(3)} of $${usd} is spent, and another iteration and the test may cost $${expected.toPrecision(3)}`
  return undefined
}
