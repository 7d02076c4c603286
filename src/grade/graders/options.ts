import { didYouMean } from '../../did-you-mean.ts'
import { ManyworldsError } from '../../errors.ts'
import type { Grade } from '../grade.ts'

/** Copies the options without undefined values, because they are sent to workers. Throws if an option is unknown. */
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

/** A grade that is either pass or fail. */
export const passOrFail = (success: boolean, feedback: string): Grade =>
  success ? { reward: 1, success } : { reward: 0, success, feedback }

/** The grade if there is no ground truth to compare with: the reward is unknown. */
export const noTruth = (grader: string, wanted = 'ground truth'): Grade => ({
  reward: null,
  feedback: `${grader}: the task has no ${wanted}`,
})
