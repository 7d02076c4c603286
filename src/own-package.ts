import { readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { OLDEST_NODE } from './oldest-node.ts'

const file = fileURLToPath(new URL('../package.json', import.meta.url))
let version: string | undefined

/** The package that this program belongs to. */
export const ownPackage = {
  folder: dirname(file),
  /** Read when it is asked for: in a bundle on another machine there is no package.json, and code that is loaded there may import this. */
  get version(): string {
    version ??= (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version
    return version
  },
  /** The oldest Node that it runs on: `22.18`. */
  oldestNode: OLDEST_NODE,
}
