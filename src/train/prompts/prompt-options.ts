import { ManyworldsError } from '../../errors.ts'
import { checkKeys } from '../check-keys.ts'
import { MAX_CHARS } from './texts.ts'

/** When to stop; at least one limit is required. */
export interface PromptBudget {
  /** The maximum number of episodes of training and validation tasks. Those of the final test are not included. */
  readonly evaluations?: number
  /**
   * The maximum cost, by the prices of the models, of episodes, reflections and the test, for which a part is reserved.
   */
  readonly usd?: number
}

export interface PromptLearnerOptions {
  /**
   * The name, in `models` of the training, of the model that rewrites texts; use a strong one. Not needed with
   * `control: 'random'`.
   */
  readonly reflect?: string
  readonly budget: PromptBudget
  /** The number of tasks that a new text is tried on before it is validated. Default 3. */
  readonly minibatch?: number
  /** The names of the texts that may change. Default: all. */
  readonly components?: readonly string[]
  /** The maximum reward: a minibatch in which all tasks have it teaches nothing and is skipped. Default 1. */
  readonly perfect?: number
  /** The maximum length of a text. Default 20,000 characters. */
  readonly maxChars?: number
  /** Sampling options of the model that rewrites texts; default: the server's. */
  readonly temperature?: number
  readonly maxOutputTokens?: number
  /**
   * Control experiments with the same budget and selection: `'random'` makes random edits without a model, `'blind'`
   * asks the model for other texts without showing it any results. Default: none.
   */
  readonly control?: 'random' | 'blind'
}

export interface PromptSettings extends Omit<PromptLearnerOptions, 'minibatch' | 'perfect' | 'maxChars'> {
  readonly minibatch: number
  readonly perfect: number
  readonly maxChars: number
}

const KEYS = [
  ...['reflect', 'budget', 'minibatch', 'components', 'perfect', 'maxChars', 'temperature', 'maxOutputTokens'],
  'control',
]
const CONTROLS: readonly unknown[] = [undefined, 'random', 'blind']

/** Validates options and fills in defaults. */
export function checkedPromptOptions(options: PromptLearnerOptions): PromptSettings {
  if (typeof options !== 'object' || options === null)
    throw wrong("options must be an object such as { reflect: 'large', budget: { evaluations: 300 } }")
  checkKeys(options, KEYS, 'promptLearner()')
  const { reflect, budget, minibatch = 3, components, perfect = 1, maxChars = 20_000, control } = options
  if (!CONTROLS.includes(control)) throw wrong(`\`control\` must be 'random' or 'blind', it is ${shown(control)}`)
  if (control === 'random' ? reflect !== undefined && !isText(reflect) : !isText(reflect))
    throw wrong(`\`reflect\` must be the name of one of the training's models, it is ${shown(reflect)}`)
  checkBudget(budget)
  count('minibatch', minibatch, 1000)
  count('maxChars', maxChars, MAX_CHARS)
  if (typeof perfect !== 'number' || Number.isNaN(perfect)) throw wrong('`perfect` must be a number')
  if (options.temperature !== undefined && !(options.temperature >= 0))
    throw wrong(`\`temperature\` must be a number of at least 0, it is ${shown(options.temperature)}`)
  if (options.maxOutputTokens !== undefined) count('maxOutputTokens', options.maxOutputTokens, 10_000_000)
  if (components !== undefined && !(Array.isArray(components) && components.length > 0 && components.every(isText)))
    throw wrong('`components` must be a list of text names')
  return { ...options, minibatch, perfect, maxChars }
}

function checkBudget(budget: PromptBudget): void {
  if (typeof budget !== 'object' || budget === null)
    throw wrong('`budget` is required: { evaluations: 300 }, { usd: 5 }, or both')
  checkKeys(budget, ['evaluations', 'usd'], '`budget` of promptLearner()')
  const { evaluations, usd } = budget
  if (evaluations === undefined && usd === undefined)
    throw wrong('`budget` needs `evaluations` (episodes), `usd`, or both')
  if (evaluations !== undefined) count('budget.evaluations', evaluations, 1_000_000_000)
  if (usd !== undefined && !(usd > 0)) throw wrong(`\`budget.usd\` must be a number above 0, it is ${shown(usd)}`)
}

function count(what: string, value: unknown, max: number): void {
  if (!Number.isInteger(value) || (value as number) < 1 || (value as number) > max)
    throw wrong(`\`${what}\` must be a whole number from 1 to ${max}, it is ${shown(value)}`)
}

const isText = (value: unknown) => typeof value === 'string' && value !== ''
const shown = (value: unknown) => (typeof value === 'string' ? `'${value}'` : String(value))
const wrong = (what: string) => new ManyworldsError('CONFIG_INVALID', `promptLearner: ${what}`)
