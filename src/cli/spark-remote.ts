import { readFileSync } from 'node:fs'
import { ManyworldsError } from '../errors.ts'
import { UsageError } from './usage-error.ts'

export const REMOTE_VARIABLE = 'SPARK_REMOTE'

/** The Connect server that the environment names: the variable is Spark's own. */
export const remoteOfEnvironment = (): string | undefined => process.env[REMOTE_VARIABLE] || undefined

const TOKEN = /;token=[^;]*/g

/** What was typed, with the token in the file that was typed beside it. */
export function typedRemote(remote: string, tokenFile: string | undefined): string {
  if (tokenFile === undefined) return remote
  if (remote.search(TOKEN) >= 0)
    throw new UsageError('--spark-remote has a token in it, and --token-file names another; give one of them')
  return withTokenOf(tokenFile, remote)
}

/** The address with the token in a file, in place of one that it may have. */
export function withTokenOf(file: string, remote: string): string {
  const address = remote.replace(TOKEN, '')
  const parameters = /^sc:\/\/[^/]*$/.test(address) ? '/' : ''
  return `${address}${parameters};token=${encodeURIComponent(read(file))}`
}

/** For others to see. */
export const withoutToken = (words: string): string => words.replace(TOKEN, ';token=...')

/** Spark takes tokens of any kind, so that there is little that can be wrong with one. */
function read(file: string): string {
  let token: string
  try {
    token = readFileSync(file, 'utf8').trim()
  } catch (cause) {
    throw wrong(`the token cannot be read: ${(cause as Error).message}`, cause)
  }
  if (token === '') throw wrong(`${file} is empty`)
  return token
}

const wrong = (why: string, cause?: unknown) => new ManyworldsError('CONFIG_INVALID', `--token-file: ${why}`, { cause })
