/** A Ray cluster as workers: `ray` of a RunConfig. */
export interface RayOptions {
  /** Where the cluster is: `'auto'` (the one of this machine, or RAY_ADDRESS), `host:port`, `ray://host:port`. Default `'auto'`. */
  readonly address?: string
  /** What each worker takes of its machine. Default: one CPU, nothing else. */
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
  /** Node on the cluster: `'auto'` (on the PATH there), a path, or `'wheel'`: brought along by PyPI. Default `'auto'`. */
  readonly nodeBinary?: string
  /** Ray's namespace for the actors. */
  readonly namespace?: string
  /** The cluster's token, or a file that has it. Default: RAY_AUTH_TOKEN_PATH. */
  readonly token?: string
  readonly tokenFile?: string
  /** Paths of PEM files, for a cluster that was started with RAY_USE_TLS. */
  readonly tls?: { readonly cert: string; readonly key: string; readonly ca: string }
  /** The version of Ray to talk to the cluster with. Default: the cluster's. */
  readonly version?: string
  /** The cluster grows when more is asked for than it has. Then nothing is refused as impossible. Default false. */
  readonly autoscaling?: boolean
}
