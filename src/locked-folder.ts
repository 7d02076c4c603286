import { lstatSync, mkdirSync, readdirSync, realpathSync, renameSync, rmSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { isSafeParent } from './private-folder.ts'
import { isLocked, lockPath, RunLock } from './store/lock.ts'

/** In it is the file that its owner keeps locked for as long as it lives. */
const LOCKED = 'alive'

/** Whoever looks for leftovers may put the file of the lock there once more, while the folder is being removed. */
const REMOVING = { recursive: true, force: true, maxRetries: 5 } as const

/**
 * A folder for temporary files that is removed when its owner is gone, however that ended: its name tells nobody
 * whether it is still used, but the kernel's lock on a file in it does, also to a process in another PID namespace.
 */
export class LockedFolder {
  readonly path: string
  readonly #inode: number
  /** Undefined once it was given up. */
  #lock: RunLock | undefined

  /** Makes it. Throws if there is one. */
  constructor(path: string) {
    // It gets its name only once it is locked: `removeLeftovers` of another process would take it for one of a dead owner.
    const unlocked = join(dirname(path), `.${basename(path)}`)
    mkdirSync(unlocked, { mode: 0o700 })
    const lock = RunLock.take(join(unlocked, LOCKED))
    if (lock === undefined) throw new Error(`${path} is new, and its lock is taken`)
    renameSync(unlocked, path)
    this.path = path
    this.#inode = lstatSync(path).ino
    this.#lock = lock
  }

  /** Programs that clean up temporary files may have removed it: anybody could have its name since. */
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

/** The folder of temporary files, without symbolic links. */
export function temporaryFolder(): string {
  mkdirSync(tmpdir(), { recursive: true })
  return realpathSync(tmpdir())
}

/**
 * Removes folders of this user in `parent` whose name begins like this and whose owner was killed. Those whose lock cannot be
 * taken, for whatever reason, are left alone.
 */
export function removeLeftovers(parent: string, prefix: string): void {
  const uid = process.getuid?.()
  // Elsewhere others could put a link in the place of the folder while it is being removed.
  if (uid === undefined || !isSafeParent(parent)) return
  for (const name of readdirSync(parent)) {
    if (!name.startsWith(prefix)) continue
    const path = join(parent, name)
    const stats = lstatSync(path, { throwIfNoEntry: false })
    // Ours are their owner's alone; in others somebody else may have put something.
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
