import { readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { OLDEST_NODE } from './oldest-node.ts'

const file = fileURLToPath(new URL('../package.json', import.meta.url))
let version: string | undefined

/** The package that this program belongs to. */
export const ownPackage = {
  name: 'manyworlds',
  folder: dirname(file),
  /** Read on first use: code in a bundle on another machine may import this module, and has no package.json. */
  get version(): string {
    version ??= (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version
    return version
  },
  /** The oldest supported Node.js: `22.18`. */
  oldestNode: OLDEST_NODE,
}
