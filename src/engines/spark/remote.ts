import { ManyworldsError } from '../../errors.ts'
import { readPems } from '../../network/pem.ts'
import type { SparkOptions } from './options.ts'

/** The address of the user's Spark. */
export function remoteOf({ remote, master }: SparkOptions): string {
  const found = remote ?? process.env.SPARK_REMOTE
  if (found !== undefined && found !== '') return found
  const advice = master === undefined ? '' : '; `spark.master` is for `inLocal: true`'
  throw new ManyworldsError(
    'CONFIG_INVALID',
    `the Spark engine needs to know its Connect server: spark: { remote: 'sc://host:15002/;token=...' }, the variable SPARK_REMOTE, or inLocal: true for a Spark of its own${advice}`,
  )
}

export const readRemoteTls = (tls: SparkOptions['remoteTls']) => tls && readPems(tls, 'spark.remoteTls')
export const readOwnTls = (tls: SparkOptions['tls']) => tls && readPems(tls, 'spark.tls')
