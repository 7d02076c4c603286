import { chmodSync, existsSync, lstatSync, realpathSync } from 'node:fs'
import { homedir } from 'node:os'
import { basename, dirname, isAbsolute, join, resolve } from 'node:path'
import { makeFolder, makeFolders } from './make-folders.ts'

const OWNER_ONLY = 0o700
const GROUP_WRITES = 0o020
const OTHERS_WRITE = 0o002
const STICKY = 0o1000

/**
 * A folder that only this user can write to, created if it is missing. Code that is run or trusted later is kept only in such
 * folders: another user who created the folder, or can write to it, would decide what we run.
 *
 * Returns its path with symbolic links resolved, so that none can be replaced afterwards. Throws an error that says what is wrong.
 */
export function privateFolder(path: string): string {
  const wanted = resolve(path)
  makeFolders(dirname(wanted), OWNER_ONLY)
  const parent = realpathSync(dirname(wanted))
  const folder = join(parent, basename(wanted))
  makeFolder(folder, OWNER_ONLY)
  if (process.getuid === undefined) return folder
  checkWayTo(parent)
  checkOwn(folder)
  return folder
}

/** Whether there is such a folder already. */
export function isPrivateFolder(path: string): boolean {
  try {
    return existsSync(path) && privateFolder(path) !== ''
  } catch {
    return false
  }
}

/** Where this user's caches are: `$XDG_CACHE_HOME/manyworlds`, or `~/.cache/manyworlds`. */
export const cacheFolder = (name: string): string => join(userFolder('XDG_CACHE_HOME', '.cache'), 'manyworlds', name)

/** Where this user's settings are: `$XDG_CONFIG_HOME/manyworlds`, or `~/.config/manyworlds`. */
export const configFolder = (): string => join(userFolder('XDG_CONFIG_HOME', '.config'), 'manyworlds')

function userFolder(variable: string, inHome: string): string {
  const named = process.env[variable]
  // The XDG specification says to ignore relative paths.
  if (named && isAbsolute(named)) return named
  // Throws for a user without a passwd entry if HOME is not set.
  const home = homedir()
  if (!isAbsolute(home)) throw new Error(`the home directory is not known: HOME is '${home}'`)
  return join(home, inHome)
}

/** Whether only root and this user control `folder`: anyone who can write to a parent folder can replace it. */
export function isSafeParent(folder: string): boolean {
  try {
    checkWayTo(folder)
    return true
  } catch {
    return false
  }
}

function checkWayTo(folder: string): void {
  const uid = process.getuid!()
  for (let at = folder; ; at = dirname(at)) {
    const { mode, uid: owner, gid } = lstatSync(at)
    if (owner !== uid && owner !== 0) throw unsafe(at, `belongs to another user (uid ${owner})`)
    // Many systems give each user a private group with the same id and no other members.
    const group = (mode & GROUP_WRITES) !== 0 && gid !== 0 && gid !== uid
    if ((mode & STICKY) === 0 && (group || (mode & OTHERS_WRITE) !== 0))
      throw unsafe(at, `can be written by other users (mode ${octal(mode)})`)
    if (at === dirname(at)) return
  }
}

function checkOwn(folder: string): void {
  const stats = lstatSync(folder)
  if (stats.isSymbolicLink()) throw unsafe(folder, 'is a symbolic link')
  if (!stats.isDirectory()) throw unsafe(folder, 'is not a directory')
  if (stats.uid !== process.getuid!()) throw unsafe(folder, `belongs to another user (uid ${stats.uid})`)
  if ((stats.mode & (GROUP_WRITES | OTHERS_WRITE)) !== 0)
    throw unsafe(
      folder,
      `can be written by other users (mode ${octal(stats.mode)}): remove it, since they may have put files there, and it is made anew`,
    )
  if ((stats.mode & 0o077) !== 0) chmodSync(folder, OWNER_ONLY)
}

const octal = (mode: number) => `0${(mode & 0o7777).toString(8)}`

const unsafe = (path: string, why: string) => new Error(`${path} ${why}`)
