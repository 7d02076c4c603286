import { defineGrader, type Grader, withOptions } from '../grader.ts'
import { checkOptions, noTruth, passOrFail, wrongOption } from './options.ts'
import { shown, textOf } from './text.ts'

export interface RegexOptions {
  /** The source of a regular expression. Default: the ground truth of each task. */
  readonly pattern?: string
  readonly flags?: string
  /** Longer answers are not searched and count as unsolved. Default: 100,000 characters. */
  readonly maxChars?: number
}

const MAX_CHARS = 100_000

export const REGEX = defineGrader<unknown, unknown, RegexOptions>({
  name: 'regex',
  module: import.meta.url,
  grade: ({ answer, groundTruth }, { params: { pattern = groundTruth, flags, maxChars = MAX_CHARS } }) => {
    if (typeof pattern !== 'string')
      return noTruth('regex', 'ground truth that is a pattern, and `pattern` was not given')
    const expression = compile(pattern, flags)
    const text = textOf(answer)
    if (text === undefined) return passOrFail(false, `the answer is ${shown(answer)}, not text`)
    if (text.length > maxChars)
      return passOrFail(false, `the answer has ${text.length} characters; more than ${maxChars} are not searched`)
    return passOrFail(expression.test(text), `${expression} does not match the answer, ${shown(answer)}`)
  },
})

/**
 * Solved if the pattern matches anywhere in the answer; use `^…$` to match all of it.
 *
 * Patterns are your own code, but run on text of others. One with catastrophic backtracking, such as `(a+)+$`, may never end on
 * a short text; `gradeTimeoutMs` stops it, and the rollout has no grade.
 */
export function regex(pattern: RegExp | RegexOptions = {}): Grader {
  const given: RegexOptions = pattern instanceof RegExp ? { pattern: pattern.source, flags: pattern.flags } : pattern
  const options = checkOptions('regex', given, ['pattern', 'flags', 'maxChars'])
  const { maxChars = MAX_CHARS } = options
  if (!Number.isInteger(maxChars) || maxChars < 1)
    throw wrongOption('regex', `\`maxChars\` must be a whole number of at least 1, it is ${maxChars}`)
  compile(options.pattern ?? '', options.flags)
  return withOptions(REGEX, options)
}

function compile(pattern: string, flags = ''): RegExp {
  // With `g` or `y`, an expression keeps the position of its last match. This one is used once, so drop them.
  const kept = flags.replaceAll(/[gy]/g, '')
  try {
    return new RegExp(pattern, kept)
  } catch (cause) {
    throw wrongOption(
      'regex',
      `/${pattern}/${kept} is not a valid regular expression: ${(cause as Error).message}`,
      cause,
    )
  }
}
