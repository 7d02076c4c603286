import { Problem } from '../../network/http-problem.ts'

/** The parameters of a request. */
export class Query {
  readonly #params: URLSearchParams

  constructor(params: URLSearchParams) {
    this.#params = params
  }

  optional(name: string): string | undefined {
    return this.#params.get(name) ?? undefined
  }

  text(name: string): string {
    const value = this.optional(name)
    if (value === undefined || value === '')
      throw new Problem(400, 'BAD_REQUEST', `the parameter \`${name}\` is missing`)
    return value
  }

  oneOf<Word extends string>(name: string, words: readonly Word[]): Word {
    const value = this.optional(name)
    const word = words.find((one) => one === value)
    if (word === undefined)
      throw new Problem(400, 'BAD_REQUEST', `the parameter \`${name}\` must be one of ${words.join(', ')}`)
    return word
  }

  /** A whole number, which may be negative. */
  integer(name: string, otherwise?: number): number {
    const value = this.optional(name)
    if (value === undefined && otherwise !== undefined) return otherwise
    const number = /^-?\d{1,15}$/.test(value ?? '') ? Number(value) : Number.NaN
    if (!Number.isSafeInteger(number))
      throw new Problem(400, 'BAD_REQUEST', `the parameter \`${name}\` must be a whole number`)
    return number
  }
}
