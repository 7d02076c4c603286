import { describeEngine, type EngineChoice, type StartsLocally } from '../choice.ts'

/** A Ray cluster as workers: `ray` of a RunConfig. */
export interface RayOptions {
  /** The cluster's address: `'auto'` (RAY_ADDRESS or this machine's cluster), `host:port`, `ray://host:port`. Default `'auto'`. */
  readonly address?: string
  /** The resources of each worker. Default: one CPU. */
  readonly numCpus?: number
  readonly numGpus?: number
  /** Bytes. */
  readonly memory?: number
  /** Custom resources: `{ accelerator: 1 }`. */
  readonly resources?: Readonly<Record<string, number>>
  /** Where workers go: Ray's `'DEFAULT'` packs them, `'SPREAD'` spreads them, or on one node. Default `'SPREAD'`. */
  readonly schedulingStrategy?: 'DEFAULT' | 'SPREAD' | { readonly nodeId: string; readonly soft?: boolean }
  /** Ray's runtime environment for the workers. */
  readonly runtimeEnv?: { readonly envVars?: Readonly<Record<string, string>>; readonly pip?: readonly string[] }
  /** Node.js on the cluster: `'auto'` (from the PATH there), a path, or `'wheel'` (installed from PyPI). Default `'auto'`. */
  readonly nodeBinary?: string
  /** Ray's namespace for the actors. */
  readonly namespace?: string
  /** The cluster's token, or a file that contains it. Default: RAY_AUTH_TOKEN_PATH. */
  readonly token?: string
  readonly tokenFile?: string
  /** Paths of PEM files, for a cluster that was started with RAY_USE_TLS. */
  readonly tls?: { readonly cert: string; readonly key: string; readonly ca: string }
  /** The Ray version of the client. Default: the cluster's. */
  readonly version?: string
  /** The cluster scales up on demand, so requests that do not fit now are not refused. Default false. */
  readonly autoscaling?: boolean
}

/**
 * A Ray cluster as workers. For `engine` of a RunConfig. With `inLocal: true`, a small cluster is started on this machine.
 *
 * @example
 * await Runners.runTask(tasks, { engine: ray({ address: 'head:6379', numCpus: 1 }) })
 */
export const ray = (options: RayOptions & StartsLocally = {}): EngineChoice<'ray'> => describeEngine('ray', options)
