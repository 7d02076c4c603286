import { defineGrader, type Grader, withOptions } from '../grader.ts'
import { checkOptions, noTruth, passOrFail, wrongOption } from './options.ts'
import { lastNumber, type NumberText, readNumber } from './read-number.ts'
import { shown } from './text.ts'

export interface NumericOptions {
  /** The largest absolute error. */
  readonly absolute?: number
  /** The largest error relative to the ground truth: 0.01 is one percent. The larger of the two limits applies. */
  readonly relative?: number
  /** Use the last number of a longer text, because models end with their result. Otherwise the answer must be a single number. */
  readonly last?: boolean
}

/** .1 + .2 differs from .3 by a rounding error. */
const ROUNDING = 1e-12

export const NUMERIC = defineGrader<unknown, unknown, NumericOptions>({
  name: 'numeric',
  module: import.meta.url,
  grade: ({ answer, groundTruth }, { params: { absolute = 0, relative = 0, last = false } }) => {
    const givenTruth = toNumber(groundTruth, false)
    if (!givenTruth) return noTruth('numeric', 'ground truth that is a number')
    const given = toNumber(answer, last)
    if (!given) return passOrFail(false, `the answer is ${shown(answer)}, ${last ? 'without' : 'not'} a number`)
    const [found, truth] = sameReading(given, givenTruth)
    for (const [what, value, { value: read, plain }] of [
      ['answer', answer, found],
      ['ground truth', groundTruth, truth],
    ] as const)
      if (Number.isNaN(read))
        return passOrFail(false, `the ${what} is ${shown(value)}: ${plain!.unit} may be a magnitude or a unit`)
    if (truth.unit !== '' && found.unit !== '' && truth.unit !== found.unit)
      return passOrFail(false, `the answer is in ${shown(found.unit)}; expected ${shown(truth.unit)}`)
    const allowed = Math.max(absolute, relative * Math.abs(truth.value), ROUNDING * Math.abs(truth.value))
    const solved = found.value === truth.value || Math.abs(found.value - truth.value) <= allowed
    return passOrFail(solved, `the answer is ${found.value}; expected ${truth.value}${tolerance(absolute, relative)}`)
  },
})

/**
 * Solved if the answer is the same number as the ground truth. Reads thousands separators, units, percent and currency signs.
 * If both have a unit, it must be the same; otherwise units are ignored: `12 %` is 12. Attached magnitudes are read: `2k` is
 * 2,000. `5m` and `5b` may be units, so they equal only a number with the same suffix, and `$5m` is 5 million.
 */
export function numeric(options: NumericOptions = {}): Grader {
  const checked = checkOptions('numeric', options, ['absolute', 'relative', 'last'])
  for (const key of ['absolute', 'relative'] as const) {
    const value = checked[key]
    if (value !== undefined && !(value >= 0 && Number.isFinite(value)))
      throw wrongOption('numeric', `\`${key}\` must be a number of at least 0, it is ${value}`)
  }
  return withOptions(NUMERIC, checked)
}

function toNumber(value: unknown, last: boolean): NumberText | undefined {
  if (typeof value === 'number') return Number.isNaN(value) ? undefined : { value, unit: '' }
  if (typeof value === 'bigint') return { value: Number(value), unit: '' }
  if (typeof value !== 'string') return undefined
  return readNumber(value) ?? (last ? lastNumber(value) : undefined)
}

/** A suffix is a unit if the other number has the same one: `300K` is `300 K`, and `5m` is `5 m`. */
function sameReading(found: NumberText, truth: NumberText): readonly [NumberText, NumberText] {
  const units = ({ unit, plain }: NumberText) => [unit, plain?.unit]
  const isUnit = ({ plain }: NumberText, other: NumberText) => plain !== undefined && units(other).includes(plain.unit)
  return [isUnit(found, truth) ? found.plain! : found, isUnit(truth, found) ? truth.plain! : truth]
}

function tolerance(absolute: number, relative: number): string {
  const limits = [...(absolute > 0 ? [`${absolute}`] : []), ...(relative > 0 ? [`${100 * relative} %`] : [])]
  return limits.length > 0 ? ` within ${limits.join(' or ')}` : ''
}
