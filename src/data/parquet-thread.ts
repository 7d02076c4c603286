import { existsSync, statSync } from 'node:fs'
import { getHeapStatistics } from 'node:v8'
import { Worker } from 'node:worker_threads'
import { DataError } from './data-error.ts'
import type { ParsedRow } from './data-set.ts'

export interface ParquetRequest {
  readonly path: string
  /** The name of the file in messages. */
  readonly file: string
  readonly columns: readonly string[] | undefined
}

/** What the thread sends, each time it is asked for more. */
export type ParquetSaid =
  | { readonly rows: readonly ParsedRow[] }
  | { readonly end: true }
  | {
      readonly failed: {
        code: 'DATA_INVALID' | 'DATA_UNREADABLE'
        line?: number | undefined
        what: string
        cause: unknown
      }
    }

/** What reading a file may take. */
export interface ParquetLimits {
  /** For the rows of a row group, and for as many MB of the file. */
  readonly ms: number
  readonly msPerMb: number
  readonly heapMb: number
}

const MB = 1024 * 1024

/** Half of what this process may use; a damaged file cannot take more. */
const heapMb = () => Math.max(512, Math.floor(getHeapStatistics().heap_size_limit / MB / 2))
const defaultLimits = (): ParquetLimits => ({ ms: 60_000, msPerMb: 1000, heapMb: heapMb() })

/**
 * Reads a Parquet file in a thread. Its decoder trusts the file: a few damaged bytes can make it run without end or use all memory,
 * which nothing in the same thread can stop.
 */
export async function* readParquet(
  request: ParquetRequest,
  limits: ParquetLimits = defaultLimits(),
): AsyncGenerator<Iterable<ParsedRow>> {
  const extension = import.meta.url.endsWith('.ts') ? '.ts' : '.js'
  const program = new URL(`./parquet-thread-main${extension}`, import.meta.url)
  // A bundle does not have this file. It runs in workers, which the driver ends and replaces if the decoder hangs.
  if (!existsSync(program)) {
    const { parquetGroups } = await import('./parquet-rows.ts')
    return yield* parquetGroups(request.path, request.file, request.columns)
  }
  const thread = new Worker(program, {
    workerData: request,
    // Don't pass on the user's flags (loaders, --import).
    execArgv: [],
    name: 'manyworlds Parquet',
    resourceLimits: { maxOldGenerationSizeMb: limits.heapMb },
  })
  const bytes = statSync(request.path, { throwIfNoEntry: false })?.size ?? 0
  const answers = new Answers(thread, request.file, limits.ms + limits.msPerMb * (bytes / MB))
  try {
    for (;;) {
      const said = await answers.next()
      if ('end' in said) return
      if ('failed' in said) {
        const { code, line, what, cause } = said.failed
        throw new DataError(code, { file: request.file, line }, what, { cause })
      }
      yield said.rows
    }
  } finally {
    await thread.terminate()
  }
}

/** Asks the thread for one answer after the other. */
class Answers {
  readonly #thread: Worker
  readonly #file: string
  readonly #ms: number
  /** Why there are no more. */
  #over: Error | undefined
  #settle: ((said: ParquetSaid | Error) => void) | undefined

  constructor(thread: Worker, file: string, ms: number) {
    this.#thread = thread
    this.#file = file
    this.#ms = ms
    thread.on('message', (said: ParquetSaid) => this.#settle?.(said))
    thread.on('error', (cause) => this.#end(cause))
    thread.on('exit', () => this.#end(undefined))
    // While nobody reads, it must not keep the process alive.
    thread.unref()
  }

  async next(): Promise<ParquetSaid> {
    if (this.#over) throw this.#over
    this.#thread.ref()
    const { promise, resolve } = Promise.withResolvers<ParquetSaid | Error>()
    this.#settle = resolve
    const tooLong = `it took longer than ${Math.round(this.#ms / 1000)} s`
    const timer = setTimeout(() => resolve(this.#damaged(tooLong, undefined)), this.#ms)
    this.#thread.postMessage('more')
    const said = await promise
    clearTimeout(timer)
    this.#thread.unref()
    if (said instanceof Error) throw said
    return said
  }

  #end(cause: Error | undefined): void {
    const { code, message } = (cause ?? {}) as NodeJS.ErrnoException
    const why =
      code === 'ERR_WORKER_OUT_OF_MEMORY' ? 'it needs too much memory' : (message ?? 'its thread ended unexpectedly')
    this.#over ??= code === 'ERR_MODULE_NOT_FOUND' ? this.#notInstalled(why, cause) : this.#damaged(why, cause)
    this.#settle?.(this.#over)
  }

  #notInstalled(why: string, cause: Error | undefined): DataError {
    const what = `cannot read the file, because a module is missing: ${why}. Install manyworlds again`
    return new DataError('DATA_UNREADABLE', { file: this.#file }, what, { cause })
  }

  #damaged(why: string, cause: Error | undefined): DataError {
    return new DataError(
      'DATA_INVALID',
      { file: this.#file },
      `cannot read the file: ${why}. It is probably damaged; if not, write smaller row groups (pyarrow: row_group_size=10_000)`,
      { cause },
    )
  }
}
