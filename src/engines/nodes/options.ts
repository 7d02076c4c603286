import { describeEngine, type EngineChoice } from '../choice.ts'

/** Your own machines as workers: `nodes` of a RunConfig. Give `addresses`, `listen`, or both. */
export interface NodesOptions {
  /** Where `manyworlds node --listen` runs: `worker1.cluster:5000`, `wss://worker2:5000`. */
  readonly addresses?: readonly string[]
  /** The secret that driver and nodes share. Required unless all nodes are on this machine. */
  readonly token?: string
  /** A file that contains the token. Default: the file named by MANYWORLDS_TOKEN_FILE. */
  readonly tokenFile?: string
  /** TLS, and certificates for it. Each is the path of a PEM file, or its text. */
  readonly tls?: NodesTls | true
  /** Where nodes can join during a run, with `manyworlds node --connect`: `0.0.0.0:7000`. */
  readonly listen?: string
  /** How long a run waits while there is no node at all. Default 30,000; with `listen`: without limit. */
  readonly waitMs?: number
}

/** Certificates for connections to nodes: paths of PEM files, or their text. */
export interface NodesTls {
  /** The CA of the nodes' certificates, if it is not a public one. */
  readonly ca?: string
  /** The driver's certificate: for nodes that ask for one, and for `listen`. */
  readonly cert?: string
  readonly key?: string
  /** The name in a node's certificate, if it differs from the address. */
  readonly serverName?: string
}

/**
 * Your own machines as workers, each of which runs `manyworlds node`. For `engine` of a RunConfig.
 *
 * @example
 * await Runners.runTask(tasks, { engine: nodes({ addresses: ['worker1:5000', 'worker2:5000'], tokenFile: 'token' }) })
 */
export const nodes = (options: NodesOptions): EngineChoice<'nodes'> => describeEngine('nodes', options)
