import { didYouMean } from '../../did-you-mean.ts'
import { ManyworldsError } from '../../errors.ts'
import type { LearnerTraining } from '../learner.ts'
import { episodesOfIteration, episodesOfValidation } from './budget.ts'
import type { PromptSettings } from './prompt-options.ts'
import { isTextPolicy, type TextPolicy } from './text-policy.ts'

type About = Omit<LearnerTraining, 'notice'>

/** Reports every mistake that can be found before anything starts. */
export function checkTraining(settings: PromptSettings, about: About): void {
  const { policy, validation } = about
  if (!isTextPolicy(policy))
    throw wrong(
      `it rewrites texts, but the agent has the policy '${policy.name}'; give it textPolicy({ texts: { instructions: '…' } })`,
    )
  const names = Object.keys(policy.texts)
  const unknown = settings.components?.find((name) => !names.includes(name))
  if (unknown !== undefined)
    throw wrong(
      `\`components\` contains unknown text '${unknown}'${didYouMean(unknown, names)}; the policy has ${names.join(', ')}`,
    )
  if (validation.length === 0)
    throw wrong(
      'there are no validation tasks, which are needed to select texts; give `tasks.validation`, or more tasks',
    )
  checkModels(settings, about)
  checkBudget(settings, about)
}

function checkModels({ reflect, control, budget }: PromptSettings, { models, calls }: About): void {
  const names = Object.keys(models)
  if (control !== 'random' && !Object.hasOwn(models, reflect!))
    throw new ManyworldsError(
      'MODEL_UNKNOWN',
      `promptLearner: \`reflect\` is unknown model '${reflect}'${didYouMean(reflect!, names)}; the training ${names.length === 0 ? 'has no models' : `has only ${names.join(', ')}`}; add it to \`models\`, or to models.json`,
    )
  if (budget.usd === undefined) return
  const paid = [...calls, ...(control === 'random' ? [] : [reflect!])]
  const free = paid.find((name) => {
    const model = models[name]
    return model !== undefined && (!('baseURL' in model) || model.price === undefined)
  })
  if (free !== undefined)
    throw wrong(
      `\`budget.usd\` needs the price of each model, but '${free}' has none; give models.${free} a \`price\`, { input, output } in USD per million tokens`,
    )
}

function checkBudget(settings: PromptSettings, about: About): void {
  const { evaluations } = settings.budget
  const [first, iteration] = [episodesOfValidation(about), episodesOfIteration(settings, about)]
  if (evaluations === undefined || evaluations >= first + iteration) return
  const { train, validation, rollouts } = about
  const tried = 2 * Math.min(settings.minibatch, train.length) * rollouts.train
  throw wrong(
    `\`budget.evaluations\` is ${evaluations}, but the first iteration needs ${first + iteration}: ${first} to validate the initial texts (${validation.length} tasks x ${rollouts.validation}), ${tried} to try a minibatch with two versions, ${first} to validate the new version`,
  )
}

/** The settings that versions depend on. A training may be resumed with a larger budget. */
export function storedPrompts(settings: PromptSettings, { texts }: TextPolicy): unknown {
  const { budget: _, ...kept } = settings
  return { prompts: kept, texts }
}

const wrong = (what: string) => new ManyworldsError('CONFIG_INVALID', `promptLearner: ${what}`)
