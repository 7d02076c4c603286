import { randomBytes } from 'node:crypto'
import { existsSync, linkSync, readdirSync, renameSync, statSync, unlinkSync } from 'node:fs'
import { type FileHandle, open, rm } from 'node:fs/promises'
import { join } from 'node:path'

/** Bytes per write. */
const PIECE_BYTES = 4 * 1024 * 1024

/**
 * Blobs as files named by their hash, for the workers of this machine. A file is complete or does not exist, and stays as long
 * as it has a user. The creator of the folder removes it.
 */
export class BlobFolder {
  readonly path: string
  readonly #shared: SharedLinks | undefined
  /** The users of each blob. */
  readonly #users = new Map<string, Set<object>>()

  /** `shared`: a folder on the same file system in which other processes of this user look for blobs. */
  constructor(path: string, shared?: string) {
    this.path = path
    this.#shared = shared === undefined ? undefined : new SharedLinks(shared)
  }

  /** Whether the blob is here; if so, it stays as long as `user` uses it. */
  use(sha256: string, user: object): boolean {
    const path = join(this.path, sha256)
    const isHere = (this.#users.has(sha256) && existsSync(path)) || this.#shared?.take(sha256, path) === true
    if (isHere) this.#usersOf(sha256).add(user)
    return isHere
  }

  async put({ sha256, bytes }: { readonly sha256: string; readonly bytes: Uint8Array }, user: object): Promise<void> {
    if (this.use(sha256, user)) return
    const file = await this.create(sha256)
    try {
      for (let at = 0; at < bytes.byteLength; at += PIECE_BYTES) await file.write(bytes.subarray(at, at + PIECE_BYTES))
      await file.finish(user)
    } finally {
      await file.close()
    }
  }

  /** For a blob that arrives in pieces. */
  async create(sha256: string): Promise<IncomingBlob> {
    const path = this.#newName()
    const handle = await open(path, 'wx', 0o600)
    return new IncomingBlob(path, handle, (user) => {
      renameSync(path, join(this.path, sha256))
      this.#usersOf(sha256).add(user)
      this.#shared?.give(sha256, join(this.path, sha256))
    })
  }

  /** `user` no longer uses this blob. */
  async drop(sha256: string, user: object): Promise<void> {
    const users = this.#users.get(sha256)
    if (!users?.delete(user) || users.size > 0) return
    this.#users.delete(sha256)
    // Rename first: the same blob may arrive again while its file is being removed.
    const unwanted = this.#newName()
    try {
      renameSync(join(this.path, sha256), unwanted)
    } catch {
      return // A cleaner of temporary files has removed it.
    }
    await rm(unwanted, { force: true })
    this.#shared?.removeUnused(sha256)
  }

  /** `user` no longer uses any blob. */
  async leave(user: object): Promise<void> {
    await Promise.all([...this.#users.keys()].map((sha256) => this.drop(sha256, user)))
  }

  #usersOf(sha256: string): Set<object> {
    let users = this.#users.get(sha256)
    if (users === undefined) this.#users.set(sha256, (users = new Set()))
    return users
  }

  /** A temporary name, which no worker looks for. */
  #newName(): string {
    return join(this.path, `.incoming-${randomBytes(6).toString('hex')}`)
  }
}

/** A file that is being written. It must be closed. */
export class IncomingBlob {
  readonly #path: string
  readonly #handle: FileHandle
  readonly #place: (user: object) => void

  constructor(path: string, handle: FileHandle, place: (user: object) => void) {
    this.#path = path
    this.#handle = handle
    this.#place = place
  }

  async write(piece: Uint8Array): Promise<void> {
    await this.#handle.writeFile(piece)
  }

  /** The file is complete: makes it available, in use by `user`. */
  async finish(user: object): Promise<void> {
    await this.#handle.close()
    this.#place(user)
  }

  /** Removes an unfinished file. */
  async close(): Promise<void> {
    await this.#handle.close()
    await rm(this.#path, { force: true })
  }
}

/**
 * Blobs shared by several processes of one machine: hard links to one file, one in each process's own folder and one in the
 * common folder. When the last process has removed its link, only the common one is left.
 */
class SharedLinks {
  readonly #folder: string

  constructor(folder: string) {
    this.#folder = folder
    // Remove the files of processes that were killed.
    for (const name of readdirSync(folder)) if (/^[0-9a-f]{64}$/.test(name)) this.removeUnused(name)
  }

  /** Links `path` to the shared file. False: there is none. */
  take(sha256: string, path: string): boolean {
    return isDone(() => linkSync(join(this.#folder, sha256), path))
  }

  give(sha256: string, path: string): void {
    isDone(() => linkSync(path, join(this.#folder, sha256)))
  }

  removeUnused(sha256: string): void {
    const path = join(this.#folder, sha256)
    isDone(() => statSync(path).nlink === 1 && unlinkSync(path))
  }
}

/** Another process may be faster, and some file systems have no hard links: then each process has its own file. */
function isDone(change: () => unknown): boolean {
  try {
    change()
    return true
  } catch {
    return false
  }
}
