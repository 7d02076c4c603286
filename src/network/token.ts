import { randomBytes } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { ManyworldsError } from '../errors.ts'

/** Shorter ones can be guessed by somebody who has listened in once. */
const MIN_CHARS = 16

export const newToken = (): string => `mw_${randomBytes(32).toString('base64url')}`

/** The token in a file, without the space around it. `option`: who named the file. */
export function readToken(path: string, option: string): string {
  let token: string
  try {
    token = readFileSync(path, 'utf8').trim()
  } catch (cause) {
    throw new ManyworldsError('CONFIG_INVALID', `${option}: the token cannot be read: ${(cause as Error).message}`, {
      cause,
    })
  }
  const wrong = whyNotToken(token)
  if (wrong !== undefined) throw new ManyworldsError('CONFIG_INVALID', `${option}: ${path} ${wrong}`)
  return token
}

export function whyNotToken(token: string): string | undefined {
  if (token.length < MIN_CHARS)
    return `has a token of ${token.length} characters, at least ${MIN_CHARS} are needed; \`manyworlds node token\` makes one`
  return /\s/.test(token) ? 'has a token with space in it; it must be one word' : undefined
}

/** Whether others of this machine may read the file. */
export const isReadableByOthers = (path: string): boolean => (statSync(path).mode & 0o077) !== 0
