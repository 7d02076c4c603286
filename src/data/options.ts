import { nearest } from '../did-you-mean.ts'
import { ManyworldsError } from '../errors.ts'

interface Rule {
  readonly test: (value: unknown) => boolean
  /** What the value must be; follows "must be". */
  readonly must: string
}

export type Rules = Readonly<Record<string, Rule>>

/** Throws if an option is unknown or wrong, before anything is opened. */
export function checkOptions(caller: string, options: unknown, rules: Rules): void {
  if (typeof options !== 'object' || options === null || Array.isArray(options))
    throw invalid(`${caller}: the options must be an object, got ${shown(options)}`)
  for (const [key, value] of Object.entries(options)) {
    const rule = Object.hasOwn(rules, key) ? rules[key] : undefined
    if (rule === undefined) throw invalid(`${caller}: ${unknownKey(key, Object.keys(rules))}`)
    if (value !== undefined && !rule.test(value))
      throw invalid(`${caller}: \`${key}\` must be ${rule.must}, it is ${shown(value)}`)
  }
}

function unknownKey(key: string, known: readonly string[]): string {
  const near = nearest(key, known)
  const meant = near === undefined ? '' : `, did you mean '${near}'?`
  return `unknown option '${key}'${meant}; allowed: ${known.join(', ')}`
}

export const invalid = (what: string): ManyworldsError => new ManyworldsError('CONFIG_INVALID', what)

export function shown(value: unknown): string {
  if (typeof value === 'string') return `'${value.slice(0, 60)}'`
  if (Array.isArray(value)) return 'an array'
  if (typeof value === 'object' && value !== null) return 'an object'
  return typeof value === 'function' ? 'a function' : String(value)
}
