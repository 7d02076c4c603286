import { defineGrader, type Grader, withOptions } from '../grader.ts'
import { checkOptions, noTruth, passOrFail } from './options.ts'
import { shown, textOf } from './text.ts'

export interface IncludesOptions {
  /** Ignore case. Default true. */
  readonly ignoreCase?: boolean
}

export const INCLUDES = defineGrader<unknown, unknown, IncludesOptions>({
  name: 'includes',
  module: import.meta.url,
  evaluationOnly: true,
  grade: ({ answer, groundTruth }, { params: { ignoreCase = true } }) => {
    const [text, wanted] = [textOf(answer), textOf(groundTruth)]
    // Every text contains the empty text.
    if (wanted === undefined || wanted.trim() === '') return noTruth('includes', 'ground truth that is a text')
    const normalize = (words: string) => (ignoreCase ? words.toLowerCase() : words)
    const solved = text !== undefined && normalize(text).includes(normalize(wanted.trim()))
    return passOrFail(solved, `${shown(wanted)} is not in the answer, ${shown(answer)}`)
  },
})

/**
 * Solved if the answer contains the ground truth.
 *
 * For evaluation only: an agent that lists every possible answer is always right, and training would find that out.
 */
export const includes = (options: IncludesOptions = {}): Grader =>
  withOptions(INCLUDES, checkOptions('includes', options, ['ignoreCase']))
