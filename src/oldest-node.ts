import { hostname } from 'node:os'
import { ManyworldsError } from './errors.ts'
import { isAtLeast } from './is-at-least.ts'

// Everything imported here must exist in every Node.js, so that an old one can report that it is too old.

/** The same as in package.json, which is not sent with the worker's program. */
export const OLDEST_NODE = '22.18'

/** Throws NODE_TOO_OLD. */
export function checkNode(): void {
  if (isAtLeast(process.versions.node, OLDEST_NODE)) return
  throw new ManyworldsError(
    'NODE_TOO_OLD',
    `Node.js ${OLDEST_NODE} or newer is required, but ${process.execPath} on ${hostname()} is ${process.version}; install a newer one there, or use another`,
  )
}
