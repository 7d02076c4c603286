import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readdir, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { bundleHash, writeBundle } from '../bundle/content.ts'
import { BUNDLE_FILE } from '../call-site.ts'
import { unpackBundle } from '../network/blob.ts'
import { privateFolder } from '../private-folder.ts'

/** Beyond this number, the least recently used bundles are removed. */
const KEEP = 20
/** Longer than any host takes to write a bundle. */
const OLD_MS = 60 * 60 * 1000
/** How often used bundles are marked as such, also for other hosts that share the folder. */
const TOUCH_MS = 60_000
const MANIFEST = '.manyworlds-files.json'

/**
 * The code that drivers have sent, in one folder per content hash. It was verified when it arrived, and is verified again when
 * this process first uses a bundle of an earlier process.
 */
export class BundleStore {
  /** Only this user can write to it, so a verified bundle stays as it is. */
  readonly folder: string
  readonly #verified = new Set<string>()
  /** Bundles in use, by user: these are not removed. */
  readonly #users = new Map<string, Set<object>>()
  /** Users that have left: writes for them may still be going on. */
  readonly #left = new WeakSet<object>()
  readonly #coming = new Map<string, Promise<void>>()

  private constructor(folder: string) {
    this.folder = folder
    setInterval(() => {
      for (const sha256 of this.#users.keys()) void this.#touch(sha256)
    }, TOUCH_MS).unref()
  }

  static async open(path: string): Promise<BundleStore> {
    const store = new BundleStore(privateFolder(path))
    for (const name of await readdir(store.folder))
      if (name.startsWith('.incoming-')) await store.#removeIfOld(join(store.folder, name))
    return store
  }

  /** Whether the bundle is here; if so, it stays as long as `user` needs it. */
  async has(sha256: string, user: object): Promise<boolean> {
    // Claim it first, so that it is not removed during the check.
    const alreadyUsed = this.#use(sha256, user)
    await this.#coming.get(sha256)?.catch(() => {})
    if (this.#verified.has(sha256) && existsSync(join(this.folder, sha256, BUNDLE_FILE))) {
      await this.#touch(sha256)
      return true
    }
    this.#verified.delete(sha256)
    if (!(await this.#verify(sha256))) {
      if (!alreadyUsed) this.#drop(sha256, user)
      return false
    }
    this.#verified.add(sha256)
    await this.#touch(sha256)
    return true
  }

  /** This user no longer needs its bundles. */
  async release(user: object): Promise<void> {
    this.#left.add(user)
    for (const sha256 of [...this.#users.keys()]) this.#drop(sha256, user)
    await this.#removeOld()
  }

  /** Throws if the content does not match the hash. Two drivers may send the same bundle at the same time. */
  put(sha256: string, packed: Uint8Array, user: object): Promise<void> {
    this.#use(sha256, user)
    let coming = this.#coming.get(sha256)
    if (coming === undefined) {
      coming = this.#put(sha256, packed).finally(() => this.#coming.delete(sha256))
      this.#coming.set(sha256, coming)
    }
    return coming
  }

  async #put(sha256: string, packed: Uint8Array): Promise<void> {
    this.#verified.delete(sha256)
    privateFolder(this.folder)
    const { code, files } = unpackBundle(packed)
    const actual = bundleHash(code, files)
    if (actual !== sha256) throw new Error(`its content is ${actual.slice(0, 12)}…, not ${sha256.slice(0, 12)}…`)
    const incoming = this.#newName()
    try {
      await writeBundle(incoming, { code, files })
      await writeFile(join(incoming, MANIFEST), JSON.stringify(files.map(({ path }) => path)))
      await this.#place(incoming, sha256)
    } finally {
      await rm(incoming, { recursive: true, force: true })
    }
    this.#verified.add(sha256)
    await this.#removeOld()
  }

  /** Returns whether the user had claimed it before. */
  #use(sha256: string, user: object): boolean {
    if (this.#left.has(user)) return false
    const users = this.#users.get(sha256)
    if (users === undefined) this.#users.set(sha256, new Set([user]))
    else if (users.has(user)) return true
    else users.add(user)
    return false
  }

  #drop(sha256: string, user: object): void {
    const users = this.#users.get(sha256)
    users?.delete(user)
    if (users?.size === 0) this.#users.delete(sha256)
  }

  /** Shows other hosts that share the folder that the bundle is used. */
  async #touch(sha256: string): Promise<void> {
    await utimes(join(this.folder, sha256), new Date(), new Date()).catch(() => {})
  }

  /** Nodes may share a folder: another one may have put the bundle there and use it already. */
  async #place(incoming: string, sha256: string): Promise<void> {
    const place = join(this.folder, sha256)
    for (let tries = 0; ; tries++)
      try {
        return await rename(incoming, place)
      } catch (error) {
        if (await this.#verify(sha256)) return
        const { code } = error as NodeJS.ErrnoException
        if (tries >= 3 || (code !== 'ENOTEMPTY' && code !== 'EEXIST')) throw error
        // The existing folder is damaged.
        await this.#discard(sha256)
      }
  }

  async #discard(sha256: string): Promise<void> {
    const unwanted = this.#newName()
    await rename(join(this.folder, sha256), unwanted).catch(() => {})
    await rm(unwanted, { recursive: true, force: true })
  }

  /** A temporary folder, outside of the bundles' names. Leftovers are removed at the next start. */
  #newName(): string {
    return join(this.folder, `.incoming-${randomBytes(6).toString('hex')}`)
  }

  async #verify(sha256: string): Promise<boolean> {
    try {
      const folder = join(this.folder, sha256)
      const paths = JSON.parse(await readFile(join(folder, MANIFEST), 'utf8')) as string[]
      const files = await Promise.all(paths.map(async (path) => ({ path, bytes: await readFile(join(folder, path)) })))
      return bundleHash(await readFile(join(folder, BUNDLE_FILE)), files) === sha256
    } catch {
      return false
    }
  }

  /** Keeps recent folders: another node may be writing them. */
  async #removeIfOld(path: string): Promise<void> {
    const at = (await stat(path).catch(() => undefined))?.mtimeMs ?? Date.now()
    if (Date.now() - at > OLD_MS) await rm(path, { recursive: true, force: true })
  }

  /** Removes the least recently used bundles, never those in use here. */
  async #removeOld(): Promise<void> {
    const names = (await readdir(this.folder).catch(() => [])).filter((name) => /^[0-9a-f]{64}$/.test(name))
    if (names.length <= KEEP) return
    // Another host may remove the same bundles.
    const at = async (name: string) => (await stat(join(this.folder, name)).catch(() => undefined))?.mtimeMs ?? 0
    const used = await Promise.all(names.map(async (name) => ({ name, at: await at(name) })))
    used.sort((a, b) => b.at - a.at)
    for (const { name } of used.slice(KEEP)) {
      if (this.#users.has(name)) continue
      this.#verified.delete(name)
      // Renamed first: the same bundle may arrive again while its files are being removed.
      await this.#discard(name)
    }
  }
}
