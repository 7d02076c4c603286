import { readFileSync } from 'node:fs'
import { ManyworldsError } from '../../errors.ts'
import type { SparkOptions } from './options.ts'

/** Where the user's Spark is. */
export function remoteOf({ remote, master }: SparkOptions): string {
  const found = remote ?? process.env.SPARK_REMOTE
  if (found !== undefined && found !== '') return found
  const advice = master === undefined ? '' : '; `spark.master` is for `inLocal: true`'
  throw new ManyworldsError(
    'CONFIG_INVALID',
    `the Spark engine needs to know its Connect server: spark: { remote: 'sc://host:15002/;token=...' }, the variable SPARK_REMOTE, or inLocal: true for a Spark of its own${advice}`,
  )
}

export interface Pems {
  readonly ca?: string
  readonly cert?: string
  readonly key?: string
  readonly serverName?: string
}

export const readRemoteTls = (tls: SparkOptions['remoteTls']): Pems | undefined => tls && readPems(tls, 'remoteTls')
export const readOwnTls = (tls: SparkOptions['tls']): Pems | undefined => tls && readPems(tls, 'tls')

function readPems({ ca, cert, key, serverName }: Pems, where: string): Pems {
  if ((cert === undefined) !== (key === undefined)) throw wrong(`spark.${where} needs \`cert\` and \`key\` together`)
  const pem = (value: string | undefined, name: string) => {
    if (value === undefined || value.includes('-----BEGIN')) return value
    try {
      return readFileSync(value, 'utf8')
    } catch (cause) {
      throw wrong(`spark.${where}.${name} cannot be read: ${(cause as Error).message}`, cause)
    }
  }
  const read = { ca: pem(ca, 'ca'), cert: pem(cert, 'cert'), key: pem(key, 'key'), serverName }
  return Object.fromEntries(Object.entries(read).filter(([, value]) => value !== undefined))
}

const wrong = (message: string, cause?: unknown) => new ManyworldsError('CONFIG_INVALID', message, { cause })
