/** What `doctor` found out about one thing. */
export interface Check {
  readonly name: string
  /** The section of the report: `local`, `python` (what environments are made with), `packages` (npm packages that only some engines need), or one of an engine's `sections`. */
  readonly concerns: string
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
