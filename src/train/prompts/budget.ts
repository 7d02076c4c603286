import type { Usage } from '../../trajectory/usage.ts'
import type { LearnerTraining } from '../learner.ts'
import type { PromptSettings } from './prompt-options.ts'
import type { PromptState } from './prompt-state.ts'

type Spent = PromptState['spent']

/** What a run has cost. A judge's calls are not part of what its episodes cost. */
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

/** The episodes of one iteration at most: the parent, the child, and the validation of the child. */
export function episodesOfIteration({ minibatch }: Pick<PromptSettings, 'minibatch'>, about: About): number {
  const { train, rollouts } = about
  return 2 * Math.min(minibatch, train.length) * rollouts.train + episodesOfValidation(about)
}

export const episodesOfValidation = ({ validation, rollouts }: About): number => validation.length * rollouts.validation

/**
 * Why no further iteration is begun; undefined: one is. A budget is never exceeded in episodes, since an iteration is begun only if all of it fits. In
 * money it is as good as the estimate, which takes the dearest runs so far, and puts aside what the test will cost.
 */
export function whyNoMore(
  { spent, pool }: PromptState,
  settings: Pick<PromptSettings, 'minibatch' | 'budget' | 'perfect'>,
  about: About,
): string | undefined {
  const { evaluations, usd } = settings.budget
  const needed = episodesOfIteration(settings, about)
  if (pool.some(({ scores }) => about.validation.every((task) => (scores[task] ?? 0) >= settings.perfect)))
    return `every validation task is solved, with ${spent.evaluations} evaluations`
  if (evaluations !== undefined && spent.evaluations + needed > evaluations)
    return `${spent.evaluations} of ${evaluations} evaluations are used, and another iteration may need ${needed}`
  const expected = (needed + about.testEpisodes) * spent.episodeUsd + spent.askUsd
  if (usd !== undefined && spent.usd + expected > usd)
    return `$${spent.usd.toPrecision(3)} of $${usd} are spent, and another iteration and the test may cost $${expected.toPrecision(3)}`
  return undefined
}
