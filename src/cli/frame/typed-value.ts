import { didYouMean } from '../../did-you-mean.ts'
import type { Option } from './command.ts'
import { UsageError } from './usage-error.ts'

/** Parses the value of an option. `label`: the name that was typed, `-w` or `--workers`. */
export function typedValue(option: Exclude<Option, { type: 'flag' }>, text: string, label: string): unknown {
  switch (option.type) {
    case 'text':
      if (text === '') throw new UsageError(`${label} needs a value; it is empty`)
      return text
    case 'choice':
      return oneOf(option.choices, text, label)
    case 'duration':
      return parseDuration(text, label)
    case 'number': {
      const { above = -Infinity, min = -Infinity, max = Infinity } = option
      const number = /^[+-]?(\d+\.?\d*|\.\d+)$/.test(text) ? Number(text) : Number.NaN
      if (!Number.isFinite(number)) throw new UsageError(`${label}: "${text}" is not a number`)
      if (number <= above) throw new UsageError(`${label} must be more than ${above}, not ${text}`)
      if (number < min) throw new UsageError(`${label} must be at least ${min}, not ${text}`)
      if (number > max) throw new UsageError(`${label} must be at most ${max}, not ${text}`)
      return number
    }
    case 'integer': {
      const { min = 1 } = option
      const number = /^[+-]?\d+$/.test(text) ? Number(text) : Number.NaN
      if (!Number.isSafeInteger(number)) throw new UsageError(`${label}: "${text}" is not a whole number`)
      if (number < min) throw new UsageError(`${label} must be at least ${min}, not ${text}`)
      return number
    }
  }
}

export function oneOf(choices: readonly string[], text: string, label: string): string {
  if (choices.includes(text)) return text
  throw new UsageError(`${label} must be one of ${choices.join(', ')}, not "${text}"${didYouMean(text, choices)}`)
}

const UNITS_MS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** Milliseconds of `500ms`, `30s`, `2m`, `1.5h`, `1h30m` or `7d`. `label`: the option, such as `--timeout`. */
export function parseDuration(text: string, label: string): number {
  const parts = [...text.matchAll(/(\d{1,15}(?:\.\d{1,15})?)(ms|[smhd])/g)]
  if (text === '' || parts.map(([part]) => part).join('') !== text) {
    const guess = /^\d+(\.\d+)?$/.test(text) ? `; ${text} of what? "${text}s" or "${text}ms"?` : ''
    throw new UsageError(`${label}: "${text}" is not a duration such as 30s, 2m, 500ms or 1h30m${guess}`)
  }
  return parts.reduce((sum, [, count, unit]) => sum + Number(count) * UNITS_MS[unit as keyof typeof UNITS_MS], 0)
}
