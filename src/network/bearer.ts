import { hash, timingSafeEqual } from 'node:crypto'

/** Compares the tokens of requests with ours, in constant time. */
export class TokenCheck {
  readonly #digest: Buffer

  constructor(token: string) {
    this.#digest = digestOf(token)
  }

  accepts(token: string): boolean {
    return timingSafeEqual(digestOf(token), this.#digest)
  }
}

const digestOf = (text: string): Buffer => hash('sha256', text, 'buffer')

/** The token of `authorization: Bearer TOKEN`. */
export function bearerToken(authorization: string | undefined): string | undefined {
  const [, token] = /^bearer +(\S+) *$/i.exec(authorization ?? '') ?? []
  return token
}
