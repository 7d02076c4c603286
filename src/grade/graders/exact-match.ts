import { defineGrader, type Grader, withOptions } from '../grader.ts'
import { firstDifference } from './difference.ts'
import { checkOptions, noTruth, passOrFail } from './options.ts'
import { shown, textOf } from './text.ts'

export interface ExactMatchOptions {
  /** Ignore white space at both ends. Default true. */
  readonly trim?: boolean
  /** Ignore case. Default false. */
  readonly ignoreCase?: boolean
  /** The ground truth is a list, and each of its items is a correct answer. */
  readonly oneOf?: boolean
}

export const EXACT_MATCH = defineGrader<unknown, unknown, ExactMatchOptions>({
  name: 'exactMatch',
  module: import.meta.url,
  grade: ({ answer, groundTruth }, { params: { trim = true, ignoreCase = false, oneOf = false } }) => {
    if (groundTruth === undefined) return noTruth('exactMatch')
    const normalize = (text: string) => {
      const trimmed = trim ? text.trim() : text
      return ignoreCase ? trimmed.toLowerCase() : trimmed
    }
    const same = (truth: unknown) => {
      const [left, right] = [textOf(answer), textOf(truth)]
      if (left !== undefined && right !== undefined) return normalize(left) === normalize(right)
      return left === right && firstDifference(answer, truth) === undefined
    }
    const right = oneOf && Array.isArray(groundTruth) ? groundTruth : [groundTruth]
    const expected = right.slice(0, 3).map(shown).join(' or ')
    return passOrFail(right.some(same), `the answer is ${shown(answer)}; expected ${expected}`)
  },
})

/**
 * Solved if the answer equals the ground truth. Texts are compared after trimming, numbers and texts by their text, other data
 * by its content.
 */
export const exactMatch = (options: ExactMatchOptions = {}): Grader =>
  withOptions(EXACT_MATCH, checkOptions('exactMatch', options, ['trim', 'ignoreCase', 'oneOf']))
