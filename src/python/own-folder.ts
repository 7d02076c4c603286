import { chmodSync, mkdirSync, readdirSync, statSync } from 'node:fs'
import { ManyworldsError } from '../errors.ts'

const OTHERS_MAY_WRITE = 0o022
const OTHERS_MAY_ANYTHING = 0o077

/** Whether nobody but this user can have put there what is in a folder, or can exchange it. */
export function isOwnFolder(path: string): boolean {
  try {
    const { uid, mode } = statSync(path)
    return uid === process.getuid?.() && (mode & OTHERS_MAY_WRITE) === 0
  } catch {
    return false
  }
}

/** Makes a folder that only this user can use; programs are run from it. Refuses one in which others may have been at work. */
export function makeOwnFolder(path: string): void {
  mkdirSync(path, { recursive: true, mode: 0o700 })
  const { uid, mode } = statSync(path)
  if (uid !== process.getuid?.())
    throw refusal(`${path} belongs to another user (uid ${uid})`, 'name a folder of your own with XDG_CACHE_HOME')
  if ((mode & OTHERS_MAY_WRITE) !== 0 && readdirSync(path).length > 0)
    throw refusal(`others may write to ${path} (mode ${(mode & 0o777).toString(8)})`, 'remove it, and it is made anew')
  if ((mode & OTHERS_MAY_ANYTHING) !== 0) chmodSync(path, 0o700)
}

const refusal = (what: string, cure: string) =>
  new ManyworldsError('PYTHON_SETUP_FAILED', `${what}: the programs in it may have been exchanged; ${cure}`)
