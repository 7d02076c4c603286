/** A Spark cluster as workers: `spark` of a RunConfig. */
export interface SparkOptions {
  /** The cluster's Connect server: `sc://host:15002/;token=…;use_ssl=true`. Default: the variable SPARK_REMOTE. */
  readonly remote?: string
  /** How to call a Connect server whose certificate is not one that everybody trusts. Paths of PEM files, or their text. */
  readonly remoteTls?: {
    readonly ca?: string
    readonly cert?: string
    readonly key?: string
    readonly serverName?: string
  }
  /** With `inLocal`: what Spark runs on. `local[N]`, `spark://host:7077`. Default: `local[workerNum + reserve]`. */
  readonly master?: string
  /** With `inLocal`: the version of Spark. Default: the one that is tested. */
  readonly version?: string
  /** Spark's own settings: those of the session; with `inLocal`, of the whole of Spark. */
  readonly conf?: Readonly<Record<string, string | number | boolean>>
  /** Cores that workers leave free, so that queries run beside them. Default 1. */
  readonly reserve?: number
  /** The name or address under which executors can reach this process. Default: the one that it calls the server from. */
  readonly advertiseHost?: string
  /** The port that executors call back. Default: any that is free. */
  readonly port?: number
  /** Encrypts the way back. `cert` and `key` are this process's own; `ca` has signed them. Paths of PEM files, or their text. */
  readonly tls?: { readonly cert: string; readonly key: string; readonly ca?: string; readonly serverName?: string }
  /** Node on the executors: a name that is on the PATH there, or a path. Default `'node'`. */
  readonly nodeBinary?: string
  /** Variables for the workers. They travel over the way back, not in anything that Spark keeps or shows. */
  readonly env?: Readonly<Record<string, string>>
  /** How long a run waits while no slot has called back. Default 60,000. */
  readonly waitMs?: number
}
