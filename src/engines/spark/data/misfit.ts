import { ManyworldsError } from '../../../errors.ts'
import { kindInWords } from './words.ts'

/** A value that its column cannot hold as it is. */
export class Misfit extends Error {
  /** The keys that lead to the value inside the column, outermost first. */
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

/** Runs `work` on the value at `key`, and adds the key to the path of a misfit. */
export function at<T>(key: string | number, work: () => T): T {
  try {
    return work()
  } catch (error) {
    if (error instanceof Misfit) error.path.unshift(String(key))
    throw error
  }
}

/** Runs `work` on the value of a column, and turns a misfit into an error that names the column. */
export function inColumn<T>(column: string, work: () => T): T {
  try {
    return work()
  } catch (cause) {
    if (!(cause instanceof Misfit)) throw cause
    throw new ManyworldsError('CONFIG_INVALID', cause.in(column))
  }
}

const SHOWN_CHARS = 40

/** A value as words in a message. */
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

/** Such a bigint is not printed: converting it to digits takes quadratic time. */
export const isHuge = (value: bigint): boolean => BigInt.asIntN(256, value) !== value
