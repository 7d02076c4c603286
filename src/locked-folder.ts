import { lstatSync, mkdirSync, readdirSync, realpathSync, renameSync, rmSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { isSafeParent } from './private-folder.ts'
import { isLocked, lockPath, RunLock } from './store/lock.ts'

/** The file in the folder that its owner keeps locked while it lives. */
const LOCKED = 'alive'

/** A process that looks for leftovers may create the lock file again while the folder is being removed. */
const REMOVING = { recursive: true, force: true, maxRetries: 5 } as const

/**
 * A folder for temporary files that is removed after its owner is gone, however the owner ended. A kernel lock on a file in it
 * shows whether it is still used, also to processes in another PID namespace.
 */
export class LockedFolder {
  readonly path: string
  readonly #inode: number
  /** Undefined once it was released. */
  #lock: RunLock | undefined

  /** Creates the folder. Throws if it exists. */
  constructor(path: string) {
    // It gets its name only once it is locked: otherwise `removeLeftovers` of another process would remove it.
    const unlocked = join(dirname(path), `.${basename(path)}`)
    mkdirSync(unlocked, { mode: 0o700 })
    const lock = RunLock.take(join(unlocked, LOCKED))
    if (lock === undefined) throw new Error(`${path} is new, but its lock is taken`)
    renameSync(unlocked, path)
    this.path = path
    this.#inode = lstatSync(path).ino
    this.#lock = lock
  }

  /** A cleaner of temporary files may have removed it, and another user may have reused its name. */
  get isOurs(): boolean {
    const stats = lstatSync(this.path, { throwIfNoEntry: false })
    return stats?.isDirectory() === true && stats.ino === this.#inode
  }

  async remove(): Promise<void> {
    if (this.isOurs) await rm(this.path, REMOVING)
    this.giveUp()
  }

  /** For a process that ends. */
  removeNow(): void {
    if (this.isOurs) rmSync(this.path, REMOVING)
    this.giveUp()
  }

  giveUp(): void {
    this.#lock?.leave()
    this.#lock = undefined
  }
}

/** The temporary directory, with symbolic links resolved. */
export function temporaryFolder(): string {
  mkdirSync(tmpdir(), { recursive: true })
  return realpathSync(tmpdir())
}

/**
 * Removes this user's folders in `parent` with this prefix whose owner was killed. Folders whose lock cannot be taken, for
 * whatever reason, are left alone.
 */
export function removeLeftovers(parent: string, prefix: string): void {
  const uid = process.getuid?.()
  // In an unsafe parent, other users could replace the folder by a link while it is being removed.
  if (uid === undefined || !isSafeParent(parent)) return
  for (const name of readdirSync(parent)) {
    if (!name.startsWith(prefix)) continue
    const path = join(parent, name)
    const stats = lstatSync(path, { throwIfNoEntry: false })
    // Ours are private (0700). If others can write to a folder, it may contain their files.
    if (stats?.isDirectory() && stats.uid === uid && (stats.mode & 0o077) === 0) removeUnlessLocked(path)
  }
}

function removeUnlessLocked(path: string): void {
  const key = join(path, LOCKED)
  try {
    // Without the lock file it is unknown whether the folder is still used.
    if (!lstatSync(lockPath(key)).isFile() || isLocked(key)) return
    const lock = RunLock.take(key)
    if (lock === undefined) return
    rmSync(path, { recursive: true, force: true })
    lock.leave()
  } catch {
    // Another process removes it, or it cannot be removed: go on without an error.
  }
}
