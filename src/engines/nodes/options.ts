/** Your own machines as workers: `nodes` of a RunConfig. Give `addresses`, `listen`, or both. */
export interface NodesOptions {
  /** Where `manyworlds node --listen` runs: `worker1.cluster:5000`, `wss://worker2:5000`. */
  readonly addresses?: readonly string[]
  /** What driver and nodes both know, and nobody else. Needed wherever a node is not on this machine. */
  readonly token?: string
  /** A file that has the token in it. Default: the file that MANYWORLDS_TOKEN_FILE names. */
  readonly tokenFile?: string
  /** Encrypted connections, and certificates for them. Each is the path of a PEM file, or its text. */
  readonly tls?: NodesTls | true
  /** Where nodes can join while a run is going on, with `manyworlds node --connect`: `0.0.0.0:7000`. */
  readonly listen?: string
  /** How long a run waits while there is no node at all. Default 30,000; with `listen`, as long as it takes. */
  readonly waitMs?: number
}

export interface NodesTls {
  /** The authority that signed the other ends' certificates, where it is not one that everybody knows. */
  readonly ca?: string
  /** This end's own certificate: for nodes that ask for one, and for `listen`. */
  readonly cert?: string
  readonly key?: string
  /** The name in a node's certificate, where it is not the one in its address. */
  readonly serverName?: string
}
