import { closeSync, ftruncateSync, openSync, readSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { pythonFolder } from '../../python/base-folder.ts'

const BYTES = 8
let made = 0

/**
 * Eight bytes that a Python process shares with this one: the number of the request that it is executing, or 0 between
 * requests. They can be read while the process hangs and after it has died, however it died. The file is unlinked at once, so
 * nothing remains of it.
 */
export class ExecutionMark {
  readonly fd: number
  readonly #bytes = Buffer.alloc(BYTES)

  constructor() {
    const path = join(pythonFolder(), `.mark-${process.pid}-${made++}`)
    this.fd = openSync(path, 'wx+', 0o600)
    rmSync(path)
    ftruncateSync(this.fd, BYTES)
  }

  read(): number {
    readSync(this.fd, this.#bytes, 0, BYTES, 0)
    return this.#bytes.readDoubleLE(0)
  }

  close(): void {
    closeSync(this.fd)
  }
}
