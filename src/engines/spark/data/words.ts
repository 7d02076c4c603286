import { didYouMean } from '../../../did-you-mean.ts'

/** The kind of a value as words in a message: `an array`. */
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

/** The end of an error about an unknown name: the name that was probably meant, and those that exist. */
export function knownNames(typed: string, known: readonly string[], listed: string): string {
  const meant = didYouMean(typed, known)
  return `${meant}${meant === '' ? '; there' : ' There'} are ${listed}`
}
