import { didYouMean } from '../../did-you-mean.ts'
import { ManyworldsError } from '../../errors.ts'

/** An error about the options of `caller`: `pythonWorld: …`. */
export const invalid = (caller: string, what: string): ManyworldsError =>
  new ManyworldsError('ENVIRONMENT_INVALID', `${caller}: ${what}`)

export type Rule = readonly [test: (value: unknown) => boolean, must: string]

const isObject = (value: unknown) => typeof value === 'object' && value !== null && !Array.isArray(value)
const isText = (value: unknown) => typeof value === 'string' && value !== ''

export const TEXT: Rule = [isText, 'a non-empty text']
export const TEXTS: Rule = [(value) => Array.isArray(value) && value.every(isText), 'a list of texts']
export const OBJECT: Rule = [isObject, 'an object']
export const COUNT: Rule = [(value) => Number.isSafeInteger(value) && (value as number) > 0, 'a whole number above 0']
export const WHOLE: Rule = [
  (value) => Number.isSafeInteger(value) && (value as number) >= 0,
  'a whole number, 0 or more',
]
/** Timers cannot run longer than 2^31 ms (24 days). */
export const MILLISECONDS: Rule = [
  (value) => typeof value === 'number' && value > 0 && value < 2 ** 31,
  'a number of milliseconds above 0',
]

/** Throws if an option is unknown, wrong or missing. */
export function checkOptions(
  caller: string,
  options: unknown,
  rules: Readonly<Record<string, Rule>>,
  required: readonly string[] = [],
): void {
  if (!isObject(options)) throw invalid(caller, `give one object: ${caller}({ ${required.join(': …, ')}: … })`)
  const given = options as Record<string, unknown>
  for (const key of required) if (given[key] === undefined) throw invalid(caller, `\`${key}\` is missing`)
  for (const [key, value] of Object.entries(given)) {
    const rule = Object.hasOwn(rules, key) ? rules[key] : undefined
    if (rule === undefined) {
      const known = Object.keys(rules)
      throw invalid(caller, `unknown option '${key}'; allowed: ${known.join(', ')}${didYouMean(key, known)}`)
    }
    const [test, must] = rule
    if (value !== undefined && !test(value)) throw invalid(caller, `\`${key}\` must be ${must}, it is ${shown(value)}`)
  }
}

export function shown(value: unknown): string {
  if (typeof value === 'string') return `'${value.slice(0, 60)}'`
  if (Array.isArray(value)) return 'an array'
  return typeof value === 'object' && value !== null ? 'an object' : String(value)
}
