/** One line of the report. */
export interface Check {
  readonly name: string
  /**
   * The section of the report: `local`, `python` (tools that make environments), `packages` (npm packages that only some
   * engines need), or one of an engine's `sections`.
   */
  readonly concerns: string
  /** Whether its section does not work without it. */
  readonly required: boolean
  /** What it is for, in a few words. */
  readonly purpose: string
  readonly status: 'ok' | 'missing' | 'too old' | 'broken' | 'low' | 'unreachable' | 'refused' | 'other version'
  readonly version?: string
  /** Where it is: a file, or the address of a node or a cluster. */
  readonly path?: string
  /** Additional information. */
  readonly detail?: string
  /** What to do if the status is not `ok`. */
  readonly advice?: string
}

/** A program that was found, from which the status of its check follows. */
export interface Found {
  readonly version?: string
  readonly path?: string
  /** Set if it exists but does not work. */
  readonly problem?: string
}
