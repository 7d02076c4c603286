import { renameSync, statSync, writeFileSync } from 'node:fs'
import { join, parse } from 'node:path'
import { pythonFolder } from './base-folder.ts'
import { CARRIED } from './carried.ts'
import { type Lock, shortHash } from './lock.ts'

/**
 * A file of the folder `python` that workers need too. Workers on other machines do not have the files of this package,
 * so the text is bundled with their code (`carried.ts`), and written beside the Python environments when its path is
 * first needed.
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

/** Written under a temporary name first, because another process may read it at the same time. */
function written(path: string, text: string): string {
  if (statSync(path, { throwIfNoEntry: false })?.size === Buffer.byteLength(text)) return path
  const half = `${path}.${process.pid}`
  writeFileSync(half, text)
  renameSync(half, path)
  return path
}
