import { lstatSync, readdirSync, realpathSync, rmSync } from 'node:fs'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isSafeParent } from '../private-folder.ts'
import { isLocked, lockPath, RunLock } from '../store/lock.ts'

const PREFIX = 'manyworlds-node-'
/** Beside it is the file that a host keeps locked for as long as it lives. */
const LOCKED = 'alive'

/**
 * Where a host's workers have their folders: a new folder among the temporary files. Its name tells nobody whether it is
 * still used; the kernel's lock on a file in it does, also to a host in another PID namespace.
 */
export class WorkFolder {
  #path: string
  #inode: number
  /** Undefined once it was removed. */
  #lock: RunLock | undefined

  private constructor(path: string, lock: RunLock) {
    this.#path = path
    this.#inode = lstatSync(path).ino
    this.#lock = lock
  }

  static async make(): Promise<WorkFolder> {
    const { path, lock } = await makeLocked()
    return new WorkFolder(path, lock)
  }

  get path(): string {
    return this.#path
  }

  /** A new folder in it. Programs that clean up temporary files may have removed it: anybody could have its name since. */
  async newFolder(prefix: string): Promise<string> {
    if (!this.#isOurs()) {
      this.#lock?.leave()
      const { path, lock } = await makeLocked()
      this.#path = path
      this.#inode = lstatSync(path).ino
      this.#lock = lock
    }
    return mkdtemp(join(this.#path, prefix))
  }

  async remove(): Promise<void> {
    if (this.#isOurs()) await rm(this.#path, { recursive: true, force: true })
    this.#lock?.leave()
    this.#lock = undefined
  }

  #isOurs(): boolean {
    const stats = lstatSync(this.#path, { throwIfNoEntry: false })
    return stats?.isDirectory() === true && stats.ino === this.#inode
  }
}

async function makeLocked(): Promise<{ path: string; lock: RunLock }> {
  await mkdir(tmpdir(), { recursive: true })
  const path = await mkdtemp(join(realpathSync(tmpdir()), PREFIX))
  const lock = RunLock.take(join(path, LOCKED))
  if (lock === undefined) throw new Error(`${path} is new, and its lock is taken`)
  return { path, lock }
}

/**
 * Removes what hosts of this user have left that were killed. Folders whose lock cannot be taken, for whatever reason, are
 * left alone.
 */
export function removeLeftovers(): void {
  const uid = process.getuid?.()
  const parent = realpathSync(tmpdir())
  // Elsewhere others could put a link in the place of the folder while it is being removed.
  if (uid === undefined || !isSafeParent(parent)) return
  for (const name of readdirSync(parent)) {
    if (!name.startsWith(PREFIX)) continue
    const path = join(parent, name)
    const stats = lstatSync(path, { throwIfNoEntry: false })
    // `mkdtemp` makes folders that are their owner's alone; in others somebody else may have put something.
    if (stats?.isDirectory() && stats.uid === uid && (stats.mode & 0o077) === 0) removeUnlessLocked(path)
  }
}

function removeUnlessLocked(path: string): void {
  const key = join(path, LOCKED)
  try {
    // Without the file it is not known whether somebody uses it.
    if (!lstatSync(lockPath(key)).isFile() || isLocked(key)) return
    const lock = RunLock.take(key)
    if (lock === undefined) return
    rmSync(path, { recursive: true, force: true })
    lock.leave()
  } catch {
    // It is being removed by somebody else, or cannot be: that is no reason not to start.
  }
}
