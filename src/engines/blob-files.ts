import { randomBytes } from 'node:crypto'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { BlobFolder } from '../blob-folder.ts'
import type { LockedFolder } from '../locked-folder.ts'
import type { BlobContent } from './engine.ts'

const PREFIX = 'manyworlds-blobs-'

interface Opened {
  readonly locked: LockedFolder
  readonly blobs: BlobFolder
}

/** All live folders, so that the driver's exit leaves nothing behind even if the engine was not stopped. */
const all = new Set<LockedFolder>()
let watchesForTheEnd = false

/** The blobs of one engine as files on this machine. The folder's name is fixed from the start; it is made with the first blob. */
export class BlobFiles {
  readonly path: string = join(tmpdir(), `${PREFIX}${randomBytes(9).toString('hex')}`)
  #opening: Promise<Opened> | undefined
  #removed = false

  async put(blob: BlobContent): Promise<void> {
    this.#opening ??= open(this.path)
    const opening = this.#opening
    const { blobs } = await opening.catch((error) => {
      // The next try may succeed: the disk may have been full.
      if (this.#opening === opening) this.#opening = undefined
      throw error
    })
    if (!this.#removed) await blobs.put(blob, this)
  }

  async drop(sha256: string): Promise<void> {
    await (await this.#opening)?.blobs.drop(sha256, this)
  }

  fileOf(sha256: string): string {
    return join(this.path, sha256)
  }

  async remove(): Promise<void> {
    this.#removed = true
    const locked = (await this.#opening?.catch(() => undefined))?.locked
    if (locked === undefined) return
    all.delete(locked)
    await locked.remove()
  }
}

async function open(path: string): Promise<Opened> {
  const { LockedFolder, removeLeftovers, temporaryFolder } = await import('../locked-folder.ts')
  const { BlobFolder } = await import('../blob-folder.ts')
  // Remove the folders of drivers that were killed.
  removeLeftovers(temporaryFolder(), PREFIX)
  const locked = new LockedFolder(path)
  all.add(locked)
  if (!watchesForTheEnd) process.on('exit', () => all.forEach((folder) => void folder.removeNow()))
  watchesForTheEnd = true
  return { locked, blobs: new BlobFolder(path) }
}
