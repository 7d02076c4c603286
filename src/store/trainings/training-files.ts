import { hash, randomBytes } from 'node:crypto'
import { readdirSync, rmdirSync, rmSync } from 'node:fs'
import { mkdir, open, readFile, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { ManyworldsError } from '../../errors.ts'
import { wordsOf } from '../../text/thrown.ts'
import { isFull } from '../store-errors.ts'
import { isSha256 } from './training-rows.ts'

/** Names of files that `write` creates, unfinished or finished. Other files are not ours. */
const OURS = /^[0-9a-f]{64}(\.[0-9a-f]{12}\.tmp)?$/

/** Weights and states of a training: files named by their hash. A file is complete or absent. */
export class TrainingFiles {
  readonly folder: string
  readonly #id: string
  #isMade = false

  constructor(folder: string, id: string) {
    this.folder = folder
    this.#id = id
  }

  /** Resolves to the hash when the file is on disk, safe from a power failure. An equal file is not written again. */
  async write(bytes: Uint8Array): Promise<string> {
    const sha256 = hash('sha256', bytes)
    const path = this.#path(sha256)
    if (await isWhole(path, sha256)) return sha256
    const unfinished = `${path}.${randomBytes(6).toString('hex')}.tmp`
    try {
      await this.#make()
      await writeDurably(unfinished, bytes)
      await rename(unfinished, path)
      await syncFolder(this.folder)
    } catch (error) {
      await rm(unfinished, { force: true }).catch(() => {})
      throw this.#cannotWrite(path, error)
    }
    return sha256
  }

  /** Throws if the file is missing or its content does not match the hash. */
  async read(sha256: string): Promise<Uint8Array> {
    const path = this.#path(sha256)
    let bytes: Uint8Array
    try {
      bytes = await readFile(path)
    } catch (error) {
      const { message } = wordsOf(error)
      throw new ManyworldsError('STORE_GONE', `cannot read a file of training '${this.#id}': ${message}`, {
        cause: error,
      })
    }
    const found = hash('sha256', bytes)
    if (found === sha256) return bytes
    throw new ManyworldsError(
      'STORE_CORRUPT',
      `${path} is damaged: the SHA-256 of its ${bytes.length} bytes is ${found}, which differs from its name. Restore the file from a copy`,
    )
  }

  /** Files that cannot be removed now are removed when the training is opened again. */
  remove(sha256s: Iterable<string>): void {
    for (const sha256 of sha256s) this.#remove(this.#path(sha256))
  }

  /** Removes unreferenced files, left by a process that was killed before it committed or removed them. */
  removeAllBut(needed: ReadonlySet<string>): void {
    for (const name of namesIn(this.folder))
      if (OURS.test(name) && !needed.has(name)) this.#remove(join(this.folder, name))
  }

  /** Removes all our files, and the folder if it is then empty. Throws if a file cannot be removed. */
  removeAll(): void {
    for (const name of namesIn(this.folder)) if (OURS.test(name)) rmSync(join(this.folder, name), { force: true })
    for (const folder of [this.folder, dirname(this.folder)])
      try {
        rmdirSync(folder)
      } catch {
        return
      }
  }

  async #make(): Promise<void> {
    if (this.#isMade) return
    await mkdir(this.folder, { recursive: true })
    const all = dirname(this.folder)
    for (const folder of [all, dirname(all)]) await syncFolder(folder)
    this.#isMade = true
  }

  #remove(path: string): void {
    try {
      rmSync(path, { force: true })
    } catch {
      // The file only takes up space. It is removed when the training is opened again.
    }
  }

  #path(sha256: string): string {
    if (!isSha256(sha256))
      throw new Error(
        `training '${this.#id}' references the file '${sha256.slice(0, 80)}', which is not a SHA-256 hash`,
      )
    return join(this.folder, sha256)
  }

  #cannotWrite(path: string, error: unknown): ManyworldsError {
    const { message } = wordsOf(error)
    if (isFull(error))
      return new ManyworldsError(
        'STORE_FULL',
        `the disk is full: cannot write ${path} of training '${this.#id}' (${message}). Committed updates are safe: free some space and resume the training`,
        { cause: error },
      )
    return new ManyworldsError(
      'STORE_NOT_WRITABLE',
      `cannot write ${path} of training '${this.#id}': ${message}. Committed updates are safe: fix the problem and resume the training`,
      { cause: error },
    )
  }
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}

async function isWhole(path: string, sha256: string): Promise<boolean> {
  try {
    return hash('sha256', await readFile(path)) === sha256
  } catch {
    return false
  }
}

async function writeDurably(path: string, bytes: Uint8Array): Promise<void> {
  await using file = await open(path, 'wx')
  await file.writeFile(bytes)
  await file.sync()
}

async function syncFolder(path: string): Promise<void> {
  await using folder = await open(path, 'r')
  await folder.sync()
}
