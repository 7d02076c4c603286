import { type ParseArgsConfig, parseArgs } from 'node:util'
import { didYouMean } from '../../did-you-mean.ts'
import { flagOf, isMany, type Option, type Spec } from './command.ts'
import { positionalValues } from './positionals.ts'
import { typedValue } from './typed-value.ts'
import { UsageError } from './usage-error.ts'

type Values = Record<string, unknown>
export type Parsed = { readonly help: true } | { readonly help: false; readonly args: Values }

const HELP = { help: { type: 'boolean', short: 'h' } } as const

/** Parses the words after the name of a command into the arguments of its body. Throws a `UsageError` for the first mistake. */
export function parse(spec: Spec, words: readonly string[]): Parsed {
  // Not strict: the tokens are checked below, because `parseArgs` cannot suggest a similar option.
  const { tokens } = parseArgs({
    args: [...words],
    options: { ...HELP, ...parserOptions(spec) },
    strict: false,
    tokens: true,
  })
  const terminator = tokens.find(({ kind }) => kind === 'option-terminator')?.index ?? words.length
  const options = tokens.filter((token) => token.kind === 'option')
  // --help works even if other options are invalid.
  if (options.some(({ index }) => ['-h', '--help'].includes(words[index]!))) return { help: true }

  const keys = new Map(
    Object.entries(spec.options).flatMap(([key, { alias }]) =>
      [key, alias ?? key].map((name) => [flagOf(name).slice(2), key] as const),
    ),
  )
  const given: Values = {}
  for (const token of options) {
    const key = keys.get(token.name)
    if (key === undefined) throw unknownOption(spec, token.rawName)
    const option = spec.options[key]!
    const value = optionValue(option, token)
    given[key] = isMany(option) ? [...((given[key] as unknown[] | undefined) ?? []), value] : value
  }
  checkTogether(spec, given)
  const positionals = tokens.filter((token) => token.kind === 'positional')
  return {
    help: false,
    args: {
      ...defaults(spec),
      ...given,
      ...positionalValues(spec, positionals, terminator, given),
    },
  }
}

function parserOptions(spec: Spec): NonNullable<ParseArgsConfig['options']> {
  return Object.fromEntries(
    Object.entries(spec.options).flatMap(([key, { type, short, alias }]) =>
      [key, alias ?? key].map((name) => [
        flagOf(name).slice(2),
        { type: type === 'flag' ? 'boolean' : 'string', ...(short === undefined ? {} : { short }) },
      ]),
    ),
  )
}

function unknownOption(spec: Spec, typed: string): UsageError {
  const known = [...Object.keys(spec.options).map(flagOf), '--help']
  return new UsageError(`unknown option "${typed}"${typed.startsWith('--') ? didYouMean(typed, known) : ''}`)
}

interface Typed {
  readonly rawName: string
  readonly value: string | undefined
  readonly inlineValue: boolean | undefined
}

function optionValue(option: Option, { rawName, value, inlineValue }: Typed): unknown {
  if (option.type === 'flag') {
    if (value !== undefined) throw new UsageError(`${rawName} takes no value; leave "=${value}" out`)
    return true
  }
  // `--engine --json`: the value is missing, and the next option must not become the value.
  const forgotten = value?.startsWith('-') && !inlineValue && !(option.type === 'integer' && /^-\d/.test(value))
  if (value === undefined || forgotten)
    throw new UsageError(
      `${rawName} needs a value: ${rawName} ${option.value}${forgotten ? `; write a value that starts with "-" as ${rawName}=${value}` : ''}`,
    )
  return typedValue(option, value, rawName)
}

function defaults(spec: Spec): Values {
  return Object.fromEntries(
    Object.entries(spec.options).map(([key, option]) => {
      if (option.type === 'flag') return [key, false]
      if (isMany(option)) return [key, []]
      return [key, option.default === undefined ? undefined : typedValue(option, option.default, flagOf(key))]
    }),
  )
}

function checkTogether(spec: Spec, given: Values): void {
  for (const key of Object.keys(given)) {
    const { excludes = [], needs } = spec.options[key]!
    const other = excludes.find((excluded) => excluded in given)
    if (other !== undefined) throw new UsageError(`${flagOf(key)} and ${flagOf(other)} exclude each other`)
    if (needs !== undefined && !(needs in given))
      throw new UsageError(`${flagOf(key)} can only be used with ${flagOf(needs)}`)
  }
}
