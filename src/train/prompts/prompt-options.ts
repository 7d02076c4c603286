import { ManyworldsError } from '../../errors.ts'
import { checkKeys } from '../check-keys.ts'
import { MOST_CHARS } from './texts.ts'

/** At least one of them. */
export interface PromptBudget {
  /** Episodes of training and validation tasks. Those of the test, at the end, come on top. */
  readonly evaluations?: number
  /** What everything may cost, by the prices of the models: episodes, reflections and the test, for which some is put aside. */
  readonly usd?: number
}

export interface PromptLearnerOptions {
  /** The name of the model that rewrites texts, in `models` of the training. It should be a strong one. Not needed with `control: 'random'`. */
  readonly reflect?: string
  readonly budget: PromptBudget
  /** Tasks that a new text is tried on before it is validated. Default 3. */
  readonly minibatch?: number
  /** The texts that may change. Default: all. */
  readonly components?: readonly string[]
  /** A reward that cannot be better: a minibatch that has only such teaches nothing, and is skipped. Default 1. */
  readonly perfect?: number
  /** The longest text. Default 20,000 characters. */
  readonly maxChars?: number
  /** Of the model that rewrites texts; left out: the server's defaults. */
  readonly temperature?: number
  readonly maxOutputTokens?: number
  /**
   * To see what feedback itself brings, with the same budget and the same choice of the best: `'random'` makes random edits and asks no model,
   * `'blind'` asks the model for other texts without showing it anything. Default: none.
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

/** The options with their defaults. Throws what is wrong. */
export function checkedPromptOptions(options: PromptLearnerOptions): PromptSettings {
  if (typeof options !== 'object' || options === null)
    throw wrong("give one object: { reflect: 'large', budget: { evaluations: 300 } }")
  checkKeys(options, KEYS, 'promptLearner()')
  const { reflect, budget, minibatch = 3, components, perfect = 1, maxChars = 20_000, control } = options
  if (!CONTROLS.includes(control)) throw wrong(`\`control\` must be 'random' or 'blind', it is ${shown(control)}`)
  if (control === 'random' ? reflect !== undefined && !isText(reflect) : !isText(reflect))
    throw wrong(`\`reflect\` must be the name of a model of the training, it is ${shown(reflect)}`)
  checkBudget(budget)
  count('minibatch', minibatch, 1000)
  count('maxChars', maxChars, MOST_CHARS)
  if (typeof perfect !== 'number' || Number.isNaN(perfect)) throw wrong('`perfect` must be a number')
  if (options.temperature !== undefined && !(options.temperature >= 0))
    throw wrong(`\`temperature\` must be a number of at least 0, it is ${shown(options.temperature)}`)
  if (options.maxOutputTokens !== undefined) count('maxOutputTokens', options.maxOutputTokens, 10_000_000)
  if (components !== undefined && !(Array.isArray(components) && components.length > 0 && components.every(isText)))
    throw wrong('`components` must be a list of names of texts')
  return { ...options, minibatch, perfect, maxChars }
}

function checkBudget(budget: PromptBudget): void {
  if (typeof budget !== 'object' || budget === null)
    throw wrong('`budget` says when to stop: { evaluations: 300 }, { usd: 5 }, or both')
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
