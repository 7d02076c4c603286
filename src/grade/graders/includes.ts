import { defineGrader, type Grader, withOptions } from '../grader.ts'
import { checkOptions, noTruth, passOrFail } from './options.ts'
import { shown, textOf } from './text.ts'

export interface IncludesOptions {
  /** Take upper and lower case for the same; true unless told otherwise. */
  readonly ignoreCase?: boolean
}

export const INCLUDES = defineGrader<unknown, unknown, IncludesOptions>({
  name: 'includes',
  module: import.meta.url,
  evaluationOnly: true,
  grade: ({ answer, groundTruth }, { params: { ignoreCase = true } }) => {
    const [text, wanted] = [textOf(answer), textOf(groundTruth)]
    // Every text has the empty one in it.
    if (wanted === undefined || wanted.trim() === '') return noTruth('includes', 'ground truth that is text')
    const normalize = (words: string) => (ignoreCase ? words.toLowerCase() : words)
    const solved = text !== undefined && normalize(text).includes(normalize(wanted.trim()))
    return passOrFail(solved, `${shown(wanted)} is not in the answer, ${shown(answer)}`)
  },
})

/**
 * Solved if the answer has the ground truth in it somewhere.
 *
 * Evaluation only: an agent that lists every possible answer is always right, and training finds that out.
 */
export const includes = (options: IncludesOptions = {}): Grader =>
  withOptions(INCLUDES, checkOptions('includes', options, ['ignoreCase']))
