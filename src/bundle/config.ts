/** Modules are bundled with all that they import; this is for what cannot be seen from them. */
export interface BundleConfig {
  /** Files to send along: paths, folders or patterns, relative to the folder of the agent's module. */
  readonly files?: readonly string[]
  /** Packages that are installed on the other machines, and not sent: those with compiled code. */
  readonly external?: readonly string[]
}
