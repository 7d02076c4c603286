import { readFileSync } from 'node:fs'
import { UsageError } from '../../cli/frame/usage-error.ts'
import { ManyworldsError } from '../../errors.ts'

export const REMOTE_VARIABLE = 'SPARK_REMOTE'

/** The Connect server in SPARK_REMOTE, which is Spark's own variable. */
export const remoteOfEnvironment = (): string | undefined => process.env[REMOTE_VARIABLE] || undefined

const TOKEN = /;token=[^;]*/g

/** The typed address, with the token from --token-file. */
export function typedRemote(remote: string, tokenFile: string | undefined): string {
  if (tokenFile === undefined) return remote
  if (remote.search(TOKEN) >= 0)
    throw new UsageError('--spark-remote has a token in it, and --token-file names another; give one of them')
  return withTokenOf(tokenFile, remote)
}

/** Replaces the token in the address by the one in the file. */
export function withTokenOf(file: string, remote: string): string {
  const address = remote.replace(TOKEN, '')
  const parameters = /^sc:\/\/[^/]*$/.test(address) ? '/' : ''
  return `${address}${parameters};token=${encodeURIComponent(read(file))}`
}

/** For logs and screens: without the token. */
export const withoutToken = (words: string): string => words.replace(TOKEN, ';token=...')

/** Spark accepts any text as a token, so there is little to check. */
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
