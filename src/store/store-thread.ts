import { Worker } from 'node:worker_threads'
import { ManyworldsError } from '../errors.ts'
import type { CachedReply } from '../models/driver/cache.ts'
import {
  type Begun,
  type Ending,
  type FromThread,
  isOurs,
  type Opened,
  type OpenRequest,
  type Row,
  type Session,
  type ToThread,
} from './messages.ts'
import { closeReaders } from './read-connections.ts'

interface Answer {
  readonly opened?: Opened
  readonly begun?: Begun
  readonly found?: (CachedReply | undefined)[]
}

interface Waiting {
  readonly resolve: (answer: Answer) => void
  readonly reject: (error: ManyworldsError) => void
}

/** The driver's side of an open run. Calls are answered in order, after their commit. */
export class StoreFile {
  readonly path: string
  readonly number: number
  onWaiting: (message: string) => void = () => {}
  onBegun: (begun: Begun) => void = () => {}
  readonly answers: Waiting[] = []
  /** The session that begins with the next rows. */
  #session: Session | undefined

  private constructor(path: string, number: number) {
    this.path = path
    this.number = number
  }

  static async open(request: OpenRequest): Promise<{ file: StoreFile; opened: Opened }> {
    const file = new StoreFile(request.path, nextFile++)
    const { opened } = await file.#ask({ type: 'open', file: file.number, request })
    return { file, opened: opened! }
  }

  /** Begins a session: immediately, or with the first rows, which saves a transaction for small runs. */
  async begin(session: Session, atOnce: boolean): Promise<void> {
    this.#session = session
    if (atOnce) await this.write([])
  }

  async write(rows: Row[]): Promise<void> {
    const session = this.#session
    this.#session = undefined
    const { begun } = await this.#ask({ type: 'write', file: this.number, rows, session })
    if (begun) this.onBegun(begun)
  }

  /** Looks up cached model replies, in the order of the keys. */
  async lookUp(keys: Uint8Array[]): Promise<(CachedReply | undefined)[]> {
    const { found } = await this.#ask({ type: 'lookUp', file: this.number, keys })
    return found!
  }

  /** Ends the session. Without an ending, no session has begun. */
  async end(ending: Ending | undefined): Promise<void> {
    // The run had no rows, so the session has not begun yet.
    if (ending && this.#session) await this.write([])
    await this.#ask({ type: 'end', file: this.number, ending }).finally(() => open.delete(this.number))
  }

  #ask(message: ToThread): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.answers.push({ resolve, reject })
      send(this, message)
    })
  }
}

let nextFile = 1
let thread: Worker | undefined
/** The number of replies still expected from the thread. */
let expected = 0
const open = new Map<number, StoreFile>()

// One thread writes all runs of this process. It keeps the process alive only while replies are outstanding.
function send(file: StoreFile, message: ToThread): void {
  thread ??= start()
  if (expected === 0) thread.ref()
  expected++
  open.set(file.number, file)
  thread.postMessage(message)
}

/** How long the exit of the process may wait for stores to be closed. */
const CLOSE_MS = 1000

/** Closes idle stores when the process exits, so that a single file and no lock file remains. */
function closeWithProcess(worker: Worker): void {
  process.once('exit', () => {
    if (thread !== worker) return
    closeReaders()
    const done = new Int32Array(new SharedArrayBuffer(4))
    worker.postMessage({ type: 'close', done } satisfies ToThread)
    Atomics.wait(done, 0, 0, CLOSE_MS)
  })
}

function start(): Worker {
  const extension = import.meta.url.endsWith('.ts') ? '.ts' : '.js'
  const worker = new Worker(new URL(`./writer-thread${extension}`, import.meta.url), {
    // Don't pass on the user's flags (loaders, --import), and suppress Node's warning about node:sqlite.
    execArgv: ['--disable-warning=ExperimentalWarning'],
    name: 'manyworlds run files',
    // Messages are short-lived. With a larger young generation, the garbage collector copies fewer of them.
    resourceLimits: { maxYoungGenerationSizeMb: 64 },
  })
  worker.on('message', receive)
  closeWithProcess(worker)
  worker.on('error', (error) => {
    thread = undefined
    for (const file of open.values())
      for (const { reject } of file.answers.splice(0))
        reject(
          new ManyworldsError('STORE_FAILED', `the thread that writes run files crashed: ${error.message}`, {
            cause: error,
          }),
        )
    open.clear()
    expected = 0
  })
  return worker
}

function receive(message: unknown): void {
  if (!isOurs<FromThread>(message)) return
  const file = open.get(message.file)!
  if (message.type === 'waiting') return file.onWaiting(message.message)
  if (--expected === 0) thread?.unref()
  const { resolve, reject } = file.answers.shift()!
  if (message.type === 'failed') reject(new ManyworldsError(message.code, message.message))
  else resolve(message)
}
