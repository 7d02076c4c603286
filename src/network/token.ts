import { randomBytes } from 'node:crypto'
import {
  closeSync,
  constants,
  fstatSync,
  linkSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { ManyworldsError } from '../errors.ts'
import { configFolder, privateFolder } from '../private-folder.ts'
import { type Address, isLoopback, showAddress } from './address.ts'

/** Whoever answers in a node's place gets a proof with which tokens can be tried: shorter ones could be guessed. */
export const MIN_CHARS = 16
/** Bits of a mode that concern other users. */
const OTHERS = 0o077

export const newToken = (): string => `mw_${randomBytes(32).toString('base64url')}`

/** Reads the token from a file and trims it. `option`: the option that named the file, for errors. */
export function readToken(path: string, option: string): string {
  let token: string
  try {
    token = readFileSync(path, 'utf8').trim()
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException
    const why = code === 'EISDIR' ? `${path} is a folder` : message
    throw new ManyworldsError('CONFIG_INVALID', `${option}: the token cannot be read: ${why}`, { cause })
  }
  const wrong = whyNotToken(token)
  if (wrong !== undefined) throw new ManyworldsError('CONFIG_INVALID', `${option}: ${path} ${wrong}`)
  return token
}

export function whyNotToken(token: string): string | undefined {
  if (token.length < MIN_CHARS)
    return `has a token of ${token.length} characters, at least ${MIN_CHARS} are needed; \`manyworlds node token\` makes one`
  return /\s/.test(token) ? 'has a token that contains spaces; it must be one word' : undefined
}

/** Why this address may not be called without a token: anybody could answer there, and take or send code. */
export function whyTokenNeeded(address: Address, token: string | undefined): string | undefined {
  if (token !== undefined || isLoopback(address.host)) return undefined
  return `${showAddress(address)} is not on this machine, so a token is needed: whoever answers there without one would get code, tasks and environment, or send them. Make one with \`manyworlds node token --out token.txt\` and give both ends the file (nodes.tokenFile, --token-file, MANYWORLDS_TOKEN_FILE)`
}

/**
 * The token of this user, for nodes on loopback without a token: otherwise every other user of the machine could call a node or
 * impersonate one. Made on first use. Throws if it cannot be stored where only this user can read it; nothing goes on without it.
 */
export function userToken(): string {
  try {
    const path = userTokenFile()
    return readPrivate(path) ?? makePrivate(path)
  } catch (cause) {
    throw new ManyworldsError(
      'CONFIG_INVALID',
      `your own token cannot be used: ${(cause as Error).message}. Without it, every user of this machine could be the other end. Correct that, or give a token file (--token-file, nodes.tokenFile, MANYWORLDS_TOKEN_FILE)`,
      { cause },
    )
  }
}

/** The path of this user's token. */
export const userTokenFile = (): string => join(privateFolder(configFolder()), 'node-token')

/** Undefined if there is no such file. */
function readPrivate(path: string): string | undefined {
  let fd: number
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
  try {
    const { uid, mode } = fstatSync(fd)
    const token = readFileSync(fd, 'utf8').trim()
    const open = uid !== process.getuid?.() || (mode & OTHERS) !== 0
    const wrong = open ? 'can be read by other users' : whyNotToken(token)
    if (wrong !== undefined) throw new Error(`${path} ${wrong}; remove it, and a new one is made`)
    return token
  } finally {
    closeSync(fd)
  }
}

/** Never overwrites a token: another process may create one at the same time. */
function makePrivate(path: string): string {
  const own = `${path}.${randomBytes(6).toString('hex')}`
  writeFileSync(own, `${newToken()}\n`, { mode: 0o600, flag: 'wx' })
  try {
    linkSync(own, path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  } finally {
    rmSync(own, { force: true })
  }
  return readPrivate(path)!
}

/** Whether other users of this machine may read the file. */
export const isReadableByOthers = (path: string): boolean => (statSync(path).mode & OTHERS) !== 0
