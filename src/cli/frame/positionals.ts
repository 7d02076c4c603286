import { flagOf, type Positional, type Spec } from './command.ts'
import { oneOf } from './typed-value.ts'
import { UsageError } from './usage-error.ts'

type Values = Record<string, unknown>

/** Assigns words to the positionals of a spec. `terminator`: the position of `--`. `given`: the options. */
export function positionalValues(
  spec: Spec,
  tokens: readonly { readonly index: number; readonly value: string }[],
  terminator: number,
  given: Values,
): Values {
  const after = Object.entries(spec.positionals).find(([, { afterDashes }]) => afterDashes)
  const behind = (index: number) => after !== undefined && index > terminator
  const words = tokens.filter(({ index }) => !behind(index)).map(({ value }) => value)
  const values: Values = {}
  for (const [key, positional] of Object.entries(spec.positionals)) {
    if (positional.afterDashes) values[key] = tokens.filter(({ index }) => behind(index)).map(({ value }) => value)
    else if (positional.many) values[key] = words.splice(0).map((word) => checked(positional, word))
    else values[key] = words.length === 0 ? undefined : checked(positional, words.shift()!)
    if (isMissing(positional, values[key], given)) throw missing(positional)
  }
  if (words.length > 0)
    throw new UsageError(
      `unexpected argument "${words[0]}"${after === undefined ? '' : `; put arguments for the script after "--"`}`,
    )
  return values
}

function checked({ choices, value }: Positional, word: string): string {
  // Usually an unset shell variable.
  if (word === '') throw new UsageError(`${value} is empty`)
  return choices === undefined ? word : oneOf(choices, word, value)
}

function isMissing({ optional, optionalWith, afterDashes }: Positional, value: unknown, given: Values): boolean {
  if (optional || afterDashes || optionalWith?.some((key) => key in given)) return false
  return value === undefined || (Array.isArray(value) && value.length === 0)
}

function missing({ value, optionalWith, choices }: Positional): UsageError {
  const instead = (optionalWith ?? []).map((key) => `, or ${flagOf(key)}`).join('')
  return new UsageError(`${value} is missing${instead}${choices === undefined ? '' : `: ${choices.join(', ')}`}`)
}
