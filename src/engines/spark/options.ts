import { describeEngine, type EngineChoice, type StartsLocally } from '../choice.ts'

/** A Spark cluster as workers: `spark` of a RunConfig. */
export interface SparkOptions {
  /** The cluster's Connect server: `sc://host:15002/;token=…;use_ssl=true`. Default: the environment variable SPARK_REMOTE. */
  readonly remote?: string
  /** For a Connect server whose certificate is not signed by a public CA. Paths of PEM files, or their text. */
  readonly remoteTls?: {
    readonly ca?: string
    readonly cert?: string
    readonly key?: string
    readonly serverName?: string
  }
  /** With `inLocal`: Spark's master, `local[N]` or `spark://host:7077`. Default: `local[workerNum + reserve]`. */
  readonly master?: string
  /** With `inLocal`: the version of Spark. Default: the tested one. */
  readonly version?: string
  /** Spark settings: of the session; with `inLocal`, of the whole application. */
  readonly conf?: Readonly<Record<string, string | number | boolean>>
  /** Cores that workers leave free for queries. Default 1. */
  readonly reserve?: number
  /** The name or address under which executors reach this process. Default: the source address of its connection to the server. */
  readonly advertiseHost?: string
  /** The port that executors call back. Default: any free port. */
  readonly port?: number
  /** TLS for the callback. `cert` and `key` belong to this process; `ca` has signed them. Paths of PEM files, or their text. */
  readonly tls?: { readonly cert: string; readonly key: string; readonly ca?: string; readonly serverName?: string }
  /** Node.js on the executors: a name on the PATH there, or a path. Default `'node'`. */
  readonly nodeBinary?: string
  /** Environment variables for the workers. They are sent over the callback connection; Spark never stores or shows them. */
  readonly env?: Readonly<Record<string, string>>
  /** How long a run waits while no slot has called back. Default 60,000. */
  readonly waitMs?: number
}

/**
 * A Spark cluster as workers. For `engine` of a RunConfig. With `inLocal: true`, a Spark is started on this machine.
 *
 * @example
 * await Runners.runTask(tasks, { engine: spark({ remote: 'sc://spark.company:15002/;token=...' }) })
 */
export const spark = (options: SparkOptions & StartsLocally = {}): EngineChoice<'spark'> =>
  describeEngine('spark', options)
