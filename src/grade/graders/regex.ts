import { defineGrader, type Grader, withOptions } from '../grader.ts'
import { checkOptions, noTruth, passOrFail, wrongOption } from './options.ts'
import { shown, textOf } from './text.ts'

export interface RegexOptions {
  /** Of a regular expression. Left out: the ground truth of each task is one. */
  readonly pattern?: string
  readonly flags?: string
  /** Longer answers are not searched, and are unsolved; 100,000 characters unless told otherwise. */
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
 * Solved if the pattern matches somewhere in the answer; write `^…$` for all of it.
 *
 * Patterns are your own code, and run on text that others wrote. One that backtracks, such as `(a+)+$`, can take for ever on a
 * short text; `gradeTimeoutMs` ends it, and the rollout has no grade.
 */
export function regex(pattern: RegExp | RegexOptions = {}): Grader {
  const given: RegexOptions = pattern instanceof RegExp ? { pattern: pattern.source, flags: pattern.flags } : pattern
  const options = checkOptions('regex', given, ['pattern', 'flags', 'maxChars'])
  const { maxChars = MAX_CHARS } = options
  if (!Number.isInteger(maxChars) || maxChars < 1)
    throw wrongOption('regex', `\`maxChars\` must be a whole number of at least 1; it is ${maxChars}`)
  compile(options.pattern ?? '', options.flags)
  return withOptions(REGEX, options)
}

function compile(pattern: string, flags = ''): RegExp {
  // With `g` or `y` an expression remembers where it stopped; one that is used once has nothing to remember.
  const kept = flags.replaceAll(/[gy]/g, '')
  try {
    return new RegExp(pattern, kept)
  } catch (cause) {
    throw wrongOption('regex', `/${pattern}/${kept} is no regular expression: ${(cause as Error).message}`, cause)
  }
}
