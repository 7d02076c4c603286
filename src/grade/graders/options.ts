import { ManyworldsError } from '../../errors.ts'
import { didYouMean } from '../../near-miss.ts'
import type { Grade } from '../grade.ts'

/** A copy of the options, without those that are undefined: they travel. Throws unless every one of them is known. */
export function checkOptions<Options extends object>(
  grader: string,
  options: Options,
  known: (keyof Options)[],
): Options {
  if (typeof options !== 'object' || options === null || Array.isArray(options))
    throw wrongOption(grader, 'options must be an object')
  const names = known.map(String)
  const allowed = names.length > 0 ? `; allowed: ${names.join(', ')}` : ''
  for (const key of Object.keys(options))
    if (!names.includes(key)) throw wrongOption(grader, `unknown option '${key}'${didYouMean(key, names)}${allowed}`)
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as Options
}

export const wrongOption = (grader: string, what: string, cause?: unknown): ManyworldsError =>
  new ManyworldsError('GRADER_INVALID', `${grader}: ${what}`, cause === undefined ? undefined : { cause })

/** The grade of a test that is passed or not. */
export const passOrFail = (success: boolean, feedback: string): Grade =>
  success ? { reward: 1, success } : { reward: 0, success, feedback }

/** Without a ground truth there is nothing to compare with, and no reward is made up. */
export const noTruth = (grader: string, wanted = 'ground truth'): Grade => ({
  reward: null,
  feedback: `${grader}: the task has no ${wanted}`,
})
