import { ManyworldsError } from '../../../errors.ts'
import { kindInWords } from './words.ts'

/** A value that its column cannot hold as it is. */
export class Misfit extends Error {
  /** What leads to it inside of the column, from the outside in. */
  readonly path: string[] = []
  readonly #what: string

  /** `what`: `the number 300, which a tinyint cannot hold`. */
  constructor(what: string) {
    super(what)
    this.#what = what
  }

  in(column: string): string {
    const where = this.path.length === 0 ? `'${column}' is` : `'${column}' has, at '${this.path.join('.')}',`
    return `column ${where} ${this.#what}`
  }
}

/** Does something with what is at `key`, so that an error says where it was. */
export function at<T>(key: string | number, work: () => T): T {
  try {
    return work()
  } catch (error) {
    if (error instanceof Misfit) error.path.unshift(String(key))
    throw error
  }
}

/** What does not fit, with the column that it is in. */
export function inColumn<T>(column: string, work: () => T): T {
  try {
    return work()
  } catch (cause) {
    if (!(cause instanceof Misfit)) throw cause
    throw new ManyworldsError('CONFIG_INVALID', cause.in(column))
  }
}

const SHOWN_CHARS = 40

/** A value in an error. */
export function shown(value: unknown): string {
  if (typeof value === 'string')
    return `the text ${JSON.stringify(value.length > SHOWN_CHARS ? `${value.slice(0, SHOWN_CHARS)}…` : value)}`
  if (typeof value === 'number')
    return Number.isNaN(value) ? 'NaN' : `the number ${Object.is(value, -0) ? '-0' : value}`
  if (typeof value === 'bigint') return isHuge(value) ? 'a bigint of many digits' : `the bigint ${value}n`
  if (typeof value === 'boolean') return String(value)
  if (value instanceof Date && !Number.isNaN(value.getTime())) return `the date ${value.toISOString()}`
  return kindInWords(value)
}

/** To write one in digits takes the square of their number. */
export const isHuge = (value: bigint): boolean => BigInt.asIntN(256, value) !== value
