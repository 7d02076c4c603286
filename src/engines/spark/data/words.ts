import { didYouMean } from '../../../did-you-mean.ts'

/** What a value is, in the middle of a sentence. */
export function kindInWords(value: unknown): string {
  if (value === undefined || value === null) return String(value)
  if (Array.isArray(value)) return 'an array'
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? 'an invalid date' : 'a date'
  if (isPromise(value)) return 'a promise'
  if (Number.isNaN(value)) return 'NaN'
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}

export const isPromise = (value: unknown): value is PromiseLike<unknown> =>
  typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function'

/** What may have been meant by a name that is not known, and which names there are. */
export function knownNames(typed: string, known: readonly string[], listed: string): string {
  const meant = didYouMean(typed, known)
  return `${meant}${meant === '' ? '; there' : ' There'} are ${listed}`
}
