import { beginningOf } from './beginning.ts'

/** Why tasks failed: errors with the same code and, apart from numbers and ids, the same message. */
export interface Cause {
  readonly key: number
  readonly code: string
  /** The message of the first such error, cut. */
  readonly message: string
}

/** The default for the most causes of a run. */
const MOST = 1000
/**
 * Errors have the same cause if this many characters of their messages are equal after ids were replaced. Ids may differ
 * in length, so more characters are read.
 */
const ALIKE_CHARS = 300
const LOOKED_AT_CHARS = 600
/** The most characters of the example message that are sent. */
const SHOWN_CHARS = 2000
const CODE_CHARS = 100

/** Numbers the causes of failures of one run, in the order in which they are found. */
export class Causes {
  readonly #keys = new Map<string, number>()
  readonly #causes: Cause[] = []
  readonly #most: number

  /** `most`: errors beyond so many causes share one. */
  constructor(most = MOST) {
    this.#most = most
  }

  keyOf(code: string, message: string): number {
    const beginning = withoutIds(message.slice(0, LOOKED_AT_CHARS)).slice(0, ALIKE_CHARS)
    const alike = `${code.slice(0, CODE_CHARS)}\0${beginning}`
    const known = this.#keys.get(alike)
    if (known !== undefined) return known
    if (this.#causes.length >= this.#most) return this.#others()
    const text = beginningOf(message, SHOWN_CHARS)
    const key = this.#add({ code: code.slice(0, CODE_CHARS), message: text === message ? text : `${text}…` })
    this.#keys.set(alike, key)
    return key
  }

  get(key: number): Cause {
    return this.#causes[key]!
  }

  #others(): number {
    if (this.#causes.length > this.#most) return this.#most
    return this.#add({ code: 'OTHER', message: `errors beyond the first ${this.#most} causes` })
  }

  #add(cause: Omit<Cause, 'key'>): number {
    const key = this.#causes.length
    this.#causes.push({ key, ...cause })
    return key
  }
}

const WORD = /[A-Za-z0-9_]+/g
const DIGIT = /\d/
const HEX = /^[0-9a-fA-F]{8,}$/

/** Replaces the words of a text that have digits, or may be hexadecimal, in one pass. */
const withoutIds = (text: string): string =>
  text.replaceAll(WORD, (word) => (DIGIT.test(word) || HEX.test(word) ? '#' : word))
