import { didYouMean } from '../../did-you-mean.ts'
import { ManyworldsError } from '../../errors.ts'
import type { SamplingOptions } from '../generate.ts'

type Check = readonly [isRight: (value: unknown) => boolean, must: string]

const isWhole = (value: unknown): value is number => Number.isSafeInteger(value)
const ROLES: readonly unknown[] = ['agent', 'judge', 'user'] satisfies SamplingOptions['role'][]

const SAMPLING: Readonly<Record<keyof SamplingOptions, Check>> = {
  model: [(value) => typeof value === 'string', "must be the name of one of the run's models"],
  maxTokens: [(value) => isWhole(value) && value > 0, 'must be a whole number above 0'],
  temperature: [(value) => Number.isFinite(value), 'must be a number'],
  topP: [(value) => Number.isFinite(value), 'must be a number'],
  seed: [isWhole, 'must be a whole number'],
  stop: [
    (value) => Array.isArray(value) && value.every((text) => typeof text === 'string'),
    "must be a list of texts, such as ['\\n']",
  ],
  extraBody: [
    (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
    'must be an object of fields',
  ],
  signal: [(value) => value instanceof AbortSignal, 'must be an AbortSignal, such as controller.signal'],
  role: [(value) => ROLES.includes(value), "must be 'agent', 'judge' or 'user'"],
}

/** The checks of the options that are not of sampling. */
export type OwnChecks<Options> = Readonly<Record<Exclude<keyof Options, keyof SamplingOptions>, Check>>

export const wrongCall = (call: string, what: string) =>
  new ManyworldsError('REQUEST_INVALID', `ctx.${call}(): ${what}`)

/** Checks the argument of `ctx.generate()` or `ctx.complete()`, before anything is asked. */
export function checkOptions<Options extends SamplingOptions & { readonly prompt: unknown }>(
  call: string,
  example: string,
  options: Options,
  own: OwnChecks<Options>,
): Options {
  const wrong = (what: string) => wrongCall(call, what)
  if (typeof options !== 'object' || options === null) throw wrong(`the argument must be an object such as ${example}`)
  const checks: Readonly<Record<string, Check>> = { ...SAMPLING, ...own }
  const names = Object.keys(checks)
  const unknown = Object.keys(options).find((key) => !names.includes(key))
  if (unknown !== undefined)
    throw wrong(
      `unknown option '${unknown}'${didYouMean(unknown, names)}; allowed: ${names.join(', ')}. Other fields of the server go into \`extraBody\``,
    )
  for (const [name, [isRight, must]] of Object.entries(checks)) {
    const value = (options as Readonly<Record<string, unknown>>)[name]
    const isNeeded = name === 'model' || name === 'prompt'
    if ((isNeeded || value !== undefined) && !isRight(value)) throw wrong(`\`${name}\` ${must}, it is ${shown(value)}`)
  }
  return options
}

const MAX_SHOWN = 60

const shown = (value: unknown) =>
  typeof value === 'string' && value.length <= MAX_SHOWN
    ? `'${value}'`
    : Array.isArray(value)
      ? value.length === 0
        ? 'an empty list'
        : 'a list'
      : typeof value === 'object' && value !== null
        ? 'an object'
        : typeof value === 'function' || typeof value === 'string'
          ? `a ${typeof value}`
          : String(value)
