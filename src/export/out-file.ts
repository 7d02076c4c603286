import { randomBytes } from 'node:crypto'
import { link, open, realpath, rename, rm, stat } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { ManyworldsError } from '../errors.ts'

/**
 * A file that appears only when it is complete: it is written to a temporary name next to it, and renamed at the end. A process
 * that is killed leaves at most a file that ends with `.partial`.
 */
export class OutFile {
  readonly #wanted: string
  readonly #replace: boolean
  /** The temporary path that is written. */
  readonly path: string

  private constructor(wanted: string, replace: boolean) {
    this.#wanted = wanted
    this.#replace = replace
    this.path = join(dirname(wanted), `.${basename(wanted)}.${randomBytes(4).toString('hex')}.partial`)
  }

  /** `replace`: allow an existing file. */
  static async at(path: string, replace: boolean): Promise<OutFile> {
    const there = await stat(path).catch(() => undefined)
    if (there && !there.isFile()) throw failed(path, 'the path exists and is not a file')
    if (there && !replace) throw exists(path)
    // Keep a symbolic link, and replace its target.
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

  /** Moves the file without replacing: renaming would replace a file that was created in the meantime. */
  async #moveWhereNothingIs(): Promise<void> {
    try {
      await link(this.path, this.#wanted)
      await rm(this.path)
    } catch (cause) {
      const { code } = cause as NodeJS.ErrnoException
      if (code === 'EEXIST') throw exists(this.#wanted)
      // Some file systems do not support links.
      await rename(this.path, this.#wanted)
    }
  }

  async discard(): Promise<void> {
    await rm(this.path, { force: true })
  }
}

const exists = (path: string) => failed(path, 'the file already exists; use --force to replace it')

/** The message of the system, which starts with its code (EACCES and the like). */
const words = (cause: unknown) => (cause instanceof Error ? cause.message : String(cause))

export const failed = (path: string, what: string, cause?: unknown): ManyworldsError =>
  new ManyworldsError('EXPORT_FAILED', `cannot write ${path}: ${what}`, { cause })
