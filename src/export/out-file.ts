import { randomBytes } from 'node:crypto'
import { link, open, realpath, rename, rm, stat } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { ManyworldsError } from '../errors.ts'

/**
 * A file that is there once it is whole: it is written beside its place under another name, and renamed at the end. A process that is
 * killed leaves at most a file that ends with `.partial`.
 */
export class OutFile {
  readonly #wanted: string
  readonly #replace: boolean
  /** Where it is written. */
  readonly path: string

  private constructor(wanted: string, replace: boolean) {
    this.#wanted = wanted
    this.#replace = replace
    this.path = join(dirname(wanted), `.${basename(wanted)}.${randomBytes(4).toString('hex')}.partial`)
  }

  /** `replace`: a file of that name may be there. */
  static async at(path: string, replace: boolean): Promise<OutFile> {
    const there = await stat(path).catch(() => undefined)
    if (there && !there.isFile()) throw failed(path, 'it is not a file')
    if (there && !replace) throw exists(path)
    // A link stays one, and what it names is replaced.
    const file = new OutFile(there ? await realpath(path) : resolve(path), replace)
    try {
      await (await open(file.path, 'wx')).close()
    } catch (cause) {
      throw failed(path, words(cause), cause)
    }
    return file
  }

  async keep(): Promise<void> {
    try {
      if (this.#replace) await rename(this.path, this.#wanted)
      else await this.#moveWhereNothingIs()
    } catch (cause) {
      await this.discard()
      throw ManyworldsError.is(cause) ? cause : failed(this.#wanted, words(cause), cause)
    }
  }

  /** Renaming would replace what somebody has put there since we looked. */
  async #moveWhereNothingIs(): Promise<void> {
    try {
      await link(this.path, this.#wanted)
      await rm(this.path)
    } catch (cause) {
      const { code } = cause as NodeJS.ErrnoException
      if (code === 'EEXIST') throw exists(this.#wanted)
      // Some file systems have no links.
      await rename(this.path, this.#wanted)
    }
  }

  async discard(): Promise<void> {
    await rm(this.path, { force: true })
  }
}

const exists = (path: string) => failed(path, 'it is there already; --force replaces it')

/** EACCES and its like in words are in the message; the code stands before it. */
const words = (cause: unknown) => (cause instanceof Error ? cause.message : String(cause))

export const failed = (path: string, what: string, cause?: unknown): ManyworldsError =>
  new ManyworldsError('EXPORT_FAILED', `${path} cannot be written: ${what}`, { cause })
