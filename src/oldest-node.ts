import { hostname } from 'node:os'
import { isAtLeast } from './cli/version.ts'
import { ManyworldsError } from './errors.ts'

// What is imported here, and by those who call it first, must exist in every Node: an old one is to say that it is old.

/** As in package.json, which does not travel with the worker's program. */
export const OLDEST_NODE = '22.18'

/** Throws NODE_TOO_OLD. */
export function checkNode(): void {
  if (isAtLeast(process.versions.node, OLDEST_NODE)) return
  throw new ManyworldsError(
    'NODE_TOO_OLD',
    `Node ${OLDEST_NODE} or newer is needed, and ${process.execPath} on ${hostname()} is ${process.version}; install a newer one there, or start the program with another`,
  )
}
