import type { Check } from '../../cli/commands/doctor/check.ts'
import type { EngineDoctor } from '../cli-parts.ts'
import { remoteOfEnvironment, typedRemote } from './typed-remote.ts'

type Given = { readonly [Key in 'sparkRemote' | 'tokenFile' | 'tlsCa']?: string | undefined }

/** What `manyworlds doctor` looks at for this engine. */
export const sparkDoctor: EngineDoctor = {
  about:
    'So does the Spark engine with --in-local, which needs Java too; to use a Spark cluster, nothing else is needed here.',
  asks: 'With --spark-remote, or if SPARK_REMOTE names it, the Connect server of a Spark cluster is asked: whether it can be reached and takes the token, its version, how many workers it has room for, and where its executors would call this machine.',
  options: {
    sparkRemote: {
      type: 'text',
      value: 'REMOTE',
      description: 'the Connect server of a Spark cluster to check: sc://host:15002; default: what SPARK_REMOTE says',
    },
  },
  owns: 'sparkRemote',
  example: {
    about: 'and this Spark cluster?',
    line: 'manyworlds doctor --spark-remote sc://spark:15002 --token-file token.txt',
  },
  sections: {
    cluster: 'Spark cluster',
    spark: 'For the Spark engine with --in-local: set up by itself at first use, but for Java',
  },
  check: async (given) => (await Promise.all([checkHere(), askCluster(given as Given)])).flat(),
  conclude(checks) {
    const cluster = checks.find(({ concerns }) => concerns === 'cluster')
    return cluster && `The Spark cluster ${cluster.status === 'ok' ? 'can' : 'cannot'} be used.`
  },
}

/** What a Spark that is started on this machine needs. */
async function checkHere(): Promise<readonly Check[]> {
  const [{ SPARK_VERSION, needsOf }, { checkEnvironment }, { checkJava }] = await Promise.all([
    import('./environment.ts'),
    import('../../cli/commands/doctor/environment.ts'),
    import('./check-java.ts'),
  ])
  const environment = checkEnvironment(
    { name: 'Spark', concerns: 'spark', purpose: 'a Spark that is started here', version: SPARK_VERSION },
    needsOf(SPARK_VERSION),
    '"manyworlds setup spark" sets it up, or the first run with --in-local does',
  )
  return [environment, await checkJava()]
}

async function askCluster({ sparkRemote, tokenFile, tlsCa }: Given): Promise<readonly Check[]> {
  const around = remoteOfEnvironment()
  // PySpark also accepts SPARK_REMOTE=local, which is not a cluster.
  if (sparkRemote === undefined && !around?.startsWith('sc://')) return []
  const { checkSparkCluster } = await import('./check-cluster.ts')
  // Send a typed token only to a typed address.
  if (sparkRemote === undefined) return [await checkSparkCluster({ remote: around! }, false)]
  const tls = tlsCa === undefined ? {} : { remoteTls: { ca: tlsCa } }
  return [await checkSparkCluster({ remote: typedRemote(sparkRemote, tokenFile), ...tls }, true)]
}
