import { readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { OLDEST_NODE } from './oldest-node.ts'

const file = fileURLToPath(new URL('../package.json', import.meta.url))
const { version } = JSON.parse(readFileSync(file, 'utf8')) as { version: string }

/** The package that this program belongs to. */
export const ownPackage = {
  folder: dirname(file),
  version,
  /** The oldest Node that it runs on: `22.18`. */
  oldestNode: OLDEST_NODE,
}
