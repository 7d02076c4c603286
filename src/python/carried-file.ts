import { renameSync, statSync, writeFileSync } from 'node:fs'
import { join, parse } from 'node:path'
import { pythonFolder } from './base-folder.ts'
import { CARRIED } from './carried.ts'
import { type Lock, shortHash } from './lock.ts'

/**
 * A file of the folder `python` that workers need too. On other machines they have no files of this package, so its text travels
 * with their code (`carried.ts`), and becomes a file when its path is asked for, beside the Python environments.
 */
export function carriedFile(name: string): Lock {
  const text = () => CARRIED[name] ?? missing(name)
  return {
    get hash() {
      return shortHash(text())
    },
    get path() {
      const { name: stem, ext } = parse(name)
      return written(join(pythonFolder(), `${stem}-${this.hash}${ext}`), text())
    },
  }
}

function missing(name: string): never {
  throw new Error(`src/python/carried.ts does not have ${name}: run scripts/python-locks.ts`)
}

/** Under another name first: another process may look for it at the same time. */
function written(path: string, text: string): string {
  if (statSync(path, { throwIfNoEntry: false })?.size === Buffer.byteLength(text)) return path
  const half = `${path}.${process.pid}`
  writeFileSync(half, text)
  renameSync(half, path)
  return path
}
