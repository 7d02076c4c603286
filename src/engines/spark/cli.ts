import type { Option } from '../../cli/frame/command.ts'
import { ManyworldsError } from '../../errors.ts'
import type { RunConfig } from '../../run-config.ts'
import type { EngineCli, TypedAccess } from '../definition.ts'
import { sparkDoctor } from './doctor-part.ts'
import type { SparkOptions } from './options.ts'
import { sparkSetup } from './setup-part.ts'
import { REMOTE_VARIABLE, remoteOfEnvironment, typedRemote, withTokenOf } from './typed-remote.ts'

const options = {
  sparkRemote: {
    type: 'text',
    value: 'REMOTE',
    description:
      'the Connect server of the Spark cluster: sc://host:15002; asks for --engine spark; default with that: what SPARK_REMOTE says',
    excludes: ['inLocal'],
  },
  sparkMaster: {
    type: 'text',
    value: 'MASTER',
    description:
      'with --in-local: the master of the Spark that is started here: local[4], spark://host:7077; asks for --engine spark',
    needs: 'inLocal',
  },
  advertiseHost: {
    type: 'text',
    value: 'HOST',
    description:
      'with --engine spark: the name or address under which executors reach this machine; default: the one that it calls the cluster from',
  },
} as const satisfies Readonly<Record<string, Option>>

export const sparkCli: EngineCli<typeof options> = {
  group: 'Spark',
  options,
  names: ['sparkRemote'],
  // It names no cluster: that may come from the script or the environment.
  hints: ['advertiseHost'],
  configure: sparkOf,
  examples: {
    run: [
      {
        about: 'on a Spark cluster, with the token of its Connect server',
        line: 'manyworlds run agents.ts --spark-remote sc://spark:15002 --token-file token.txt',
      },
      { about: 'on a Spark that is started here', line: 'manyworlds run agents.ts --engine spark --in-local' },
    ],
    train: [{ about: 'on a Spark that is started here', line: 'manyworlds train clerk.ts --engine spark --in-local' }],
  },
  doctor: sparkDoctor,
  setup: sparkSetup,
}

type Given = TypedAccess<typeof options>

/** The Spark of a run: typed options win over the script's. */
export function sparkOf(given: Given, { engineName, inLocal, spark }: RunConfig): Pick<RunConfig, 'spark'> {
  // A wrong value is reported where configurations are checked.
  if (engineName !== 'spark' || (spark !== undefined && (typeof spark !== 'object' || spark === null))) return {}
  const { sparkMaster, advertiseHost } = given
  const all = {
    ...spark,
    ...(sparkMaster === undefined ? {} : { master: sparkMaster }),
    ...(advertiseHost === undefined ? {} : { advertiseHost }),
    // A Spark that is started here gets its own token.
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
  // A value of the script that is not text is rejected later.
  return tokenFile === undefined || typeof remote !== 'string' ? remote : withTokenOf(tokenFile, remote)
}
