import { defineGrader, type Grader } from '../grader.ts'
import { noTruth, passOrFail } from './options.ts'
import { shown, textOf } from './text.ts'

/** Answers of GAIA are short; what is longer is not compared, and is unsolved. */
const MAX_CHARS = 100_000

export const GAIA_MATCH = defineGrader({
  name: 'gaiaMatch',
  module: import.meta.url,
  grade: ({ answer, groundTruth }) => {
    const truth = textOf(groundTruth)
    if (truth === undefined) return noTruth('gaiaMatch', 'ground truth that is text or a number')
    const text = textOf(answer)
    const solved = text !== undefined && text.length <= MAX_CHARS && gaiaEqual(text, truth)
    return passOrFail(solved, `the answer is ${shown(answer)}; expected ${shown(truth)}`)
  },
})

/**
 * Scores as the GAIA benchmark does, by what the ground truth is:
 * - a number: the answer is the same number, after `$`, `%` and commas were taken out;
 * - a list, with `,` or `;`: as many items, each the same number or the same text without white space and case;
 * - text: the same without white space, punctuation and case.
 *
 * One difference: the words `inf`, `infinity` and `nan` are text here. The benchmark's own script takes them for numbers, and any
 * answer that is no number equals its infinity.
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
  // In items punctuation counts: it may be all that tells them apart.
  return number === undefined ? unspaced(answer) === unspaced(truth) : bareNumber(answer) === number
}

/** What Python's float() reads, but for infinities and NaN. JavaScript's Number() would take '' for 0 and read '0x10'. */
function pythonFloat(text: string): number | undefined {
  const trimmed = text.trim()
  if (!/^[-+]?(?:\d+(?:_\d+)*(?:\.(?:\d+(?:_\d+)*)?)?|\.\d+(?:_\d+)*)(?:e[-+]?\d+(?:_\d+)*)?$/i.test(trimmed))
    return undefined
  return Number(trimmed.replaceAll('_', ''))
}

const bareNumber = (text: string) => pythonFloat(text.replaceAll(/[$%,]/g, ''))
const unspaced = (text: string) => text.replaceAll(/\s/g, '').toLowerCase()
/** The punctuation of ASCII alone, as in Python's `string.punctuation`. */
const letters = (text: string) => unspaced(text).replaceAll(/[!-/:-@[-`{-~]/g, '')
