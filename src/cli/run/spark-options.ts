import type { SparkOptions } from '../../engines/spark/options.ts'
import { ManyworldsError } from '../../errors.ts'
import type { RunConfig } from '../../run-config.ts'
import { REMOTE_VARIABLE, remoteOfEnvironment, typedRemote, withTokenOf } from '../spark-remote.ts'
import type { RunArgs } from '../specs/run.ts'

type Given = Pick<
  RunArgs,
  'engine' | 'sparkRemote' | 'sparkMaster' | 'advertiseHost' | 'tokenFile' | 'tlsCa' | 'tlsCert' | 'tlsKey'
>

/** The Spark of a run: what was typed over what the script gives. */
export function sparkOf(given: Given, { engineName, inLocal, spark }: RunConfig): Pick<RunConfig, 'spark'> {
  // What is wrong with it is said where configurations are checked.
  if (engineName !== 'spark' || (spark !== undefined && (typeof spark !== 'object' || spark === null))) return {}
  const { sparkMaster, advertiseHost } = given
  const all = {
    ...spark,
    ...(sparkMaster === undefined ? {} : { master: sparkMaster }),
    ...(advertiseHost === undefined ? {} : { advertiseHost }),
    // One that is started here has a token of its own, and nobody else can call it.
    ...(inLocal ? {} : server(given, spark ?? {})),
  }
  return Object.keys(all).length === 0 ? {} : { spark: all }
}

/** How to call the Connect server. */
function server(given: Given, script: SparkOptions): Pick<SparkOptions, 'remote' | 'remoteTls'> {
  const { engine, tlsCa, tlsCert, tlsKey } = given
  const remote = remoteOf(given, script)
  if (remote === undefined && engine === 'spark')
    throw new ManyworldsError(
      'CONFIG_INVALID',
      `--engine spark needs to know the cluster: --spark-remote sc://host:15002, or ${REMOTE_VARIABLE}, or --in-local for a Spark that is started here`,
    )
  const tls = {
    ...script.remoteTls,
    ...(tlsCa === undefined ? {} : { ca: tlsCa }),
    ...(tlsCert === undefined || tlsKey === undefined ? {} : { cert: tlsCert, key: tlsKey }),
  }
  return {
    ...(remote === undefined ? {} : { remote }),
    ...(Object.keys(tls).length === 0 ? {} : { remoteTls: tls }),
  }
}

function remoteOf({ sparkRemote, tokenFile }: Given, script: SparkOptions): string | undefined {
  if (sparkRemote !== undefined) return typedRemote(sparkRemote, tokenFile)
  const remote = script.remote ?? remoteOfEnvironment()
  // What the script has instead of text is refused later.
  return tokenFile === undefined || typeof remote !== 'string' ? remote : withTokenOf(tokenFile, remote)
}
