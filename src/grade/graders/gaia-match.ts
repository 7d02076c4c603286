import { defineGrader, type Grader } from '../grader.ts'
import { noTruth, passOrFail } from './options.ts'
import { shown, textOf } from './text.ts'

/** Answers of GAIA are short. Longer ones are not compared and count as unsolved. */
const MAX_CHARS = 100_000

export const GAIA_MATCH = defineGrader({
  name: 'gaiaMatch',
  module: import.meta.url,
  grade: ({ answer, groundTruth }) => {
    const truth = textOf(groundTruth)
    if (truth === undefined) return noTruth('gaiaMatch', 'ground truth that is a text or a number')
    const text = textOf(answer)
    const solved = text !== undefined && text.length <= MAX_CHARS && gaiaEqual(text, truth)
    return passOrFail(solved, `the answer is ${shown(answer)}; expected ${shown(truth)}`)
  },
})

/**
 * Scores like the GAIA benchmark, by the kind of ground truth:
 * - a number: the answer must be the same number, after removing `$`, `%` and commas;
 * - a list, with `,` or `;`: the same number of items, each the same number or the same text, ignoring white space and case;
 * - a text: the same text, ignoring white space, punctuation and case.
 *
 * One difference: the words `inf`, `infinity` and `nan` are texts here. The benchmark's own script parses them as numbers, and
 * then every answer that is not a number equals infinity.
 */
export const gaiaMatch = (): Grader => GAIA_MATCH

function gaiaEqual(answer: string, truth: string): boolean {
  const number = pythonFloat(truth)
  if (number !== undefined) return bareNumber(answer) === number
  if (!/[,;]/.test(truth)) return letters(answer) === letters(truth)
  const [items, expected] = [answer.split(/[,;]/), truth.split(/[,;]/)]
  return items.length === expected.length && expected.every((item, at) => sameItem(items[at]!, item))
}

function sameItem(answer: string, truth: string): boolean {
  const number = pythonFloat(truth)
  // In list items punctuation counts, because it may be the only difference between them.
  return number === undefined ? unspaced(answer) === unspaced(truth) : bareNumber(answer) === number
}

/** Parses what Python's float() parses, except infinities and NaN. JavaScript's Number() would read '' as 0 and accept '0x10'. */
function pythonFloat(text: string): number | undefined {
  const trimmed = text.trim()
  if (!/^[-+]?(?:\d+(?:_\d+)*(?:\.(?:\d+(?:_\d+)*)?)?|\.\d+(?:_\d+)*)(?:e[-+]?\d+(?:_\d+)*)?$/i.test(trimmed))
    return undefined
  return Number(trimmed.replaceAll('_', ''))
}

const bareNumber = (text: string) => pythonFloat(text.replaceAll(/[$%,]/g, ''))
const unspaced = (text: string) => text.replaceAll(/\s/g, '').toLowerCase()
/** Removes ASCII punctuation only, like Python's `string.punctuation`. */
const letters = (text: string) => unspaced(text).replaceAll(/[!-/:-@[-`{-~]/g, '')
