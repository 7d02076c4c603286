/** What `doctor` found out about one thing. */
export interface Check {
  readonly name: string
  /** The engine that it is for; `nodes`, `cluster`: what was named of them; `python`: what Ray and Spark are set up with. */
  readonly concerns: 'local' | 'nodes' | 'cluster' | 'python' | 'ray' | 'spark'
  /** What it concerns does not work without it. */
  readonly required: boolean
  /** What it is for, in a few words. */
  readonly purpose: string
  readonly status: 'ok' | 'missing' | 'too old' | 'broken' | 'low' | 'unreachable' | 'refused' | 'other version'
  readonly version?: string
  /** Where it is: a file, or the address of a node or a cluster. */
  readonly path?: string
  /** What else is to be said. */
  readonly detail?: string
  /** What to do if the status is not `ok`. */
  readonly advice?: string
}

/** What the status of a check follows from: what was found, if anything was. */
export interface Found {
  readonly version?: string
  readonly path?: string
  /** It is there but does not work. */
  readonly problem?: string
}
