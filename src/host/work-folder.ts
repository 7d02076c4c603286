import { randomBytes } from 'node:crypto'
import { mkdtemp } from 'node:fs/promises'
import { join } from 'node:path'
import { LockedFolder, temporaryFolder } from '../locked-folder.ts'

/** The names of such folders begin with this. */
export const WORK_PREFIX = 'manyworlds-node-'

/** The parent of the workers' folders: a new folder in the temporary directory. */
export class WorkFolder {
  #folder = newFolder()

  get path(): string {
    return this.#folder.path
  }

  /** Makes a new folder in it, or in another one if a cleaner of temporary files has removed it. */
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
