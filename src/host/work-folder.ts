import { randomBytes } from 'node:crypto'
import { mkdtemp } from 'node:fs/promises'
import { join } from 'node:path'
import { LockedFolder, temporaryFolder } from '../locked-folder.ts'

/** The names of such folders begin with this. */
export const WORK_PREFIX = 'manyworlds-node-'

/** Where a host's workers have their folders: a new folder among the temporary files. */
export class WorkFolder {
  #folder = newFolder()

  get path(): string {
    return this.#folder.path
  }

  /** A new folder in it; in another one, if programs that clean up temporary files have removed it. */
  newFolder(prefix: string): Promise<string> {
    if (!this.#folder.isOurs) {
      this.#folder.giveUp()
      this.#folder = newFolder()
    }
    return mkdtemp(join(this.#folder.path, prefix))
  }

  remove(): Promise<void> {
    return this.#folder.remove()
  }
}

const newFolder = () => new LockedFolder(join(temporaryFolder(), `${WORK_PREFIX}${randomBytes(6).toString('hex')}`))
