import { ManyworldsError } from '../errors.ts'
import type { BlobOpened } from '../protocol/messages.ts'
import type { Asker } from './asker.ts'
import { blobAsking } from './blob-asking.ts'
import { BlobReader } from './blob-reader.ts'
import type { Requests } from './requests.ts'

/** Blobs that no running task uses are kept up to this total size, the most recently used first; at least one. */
const IDLE_BYTES = 256 * 1024 * 1024

/** A blob in memory. */
interface Kept {
  readonly bytes: Uint8Array
  readonly users: Set<Asker>
}

/** A blob that is being read. */
interface Load {
  readonly reader: BlobReader
  readonly done: PromiseWithResolvers<Uint8Array>
  readonly waiting: Set<Asker>
  /** Called when the task it is read for has ended. */
  carrierLeft: () => void
  carrier: Asker | undefined
}

/** The blobs in this worker. Each is read once for all tasks, and kept as long as one of them runs. */
export class WorkerBlobs {
  readonly #requests: Requests
  readonly #folder: string | undefined
  /** In the order of use, the last used at the end. */
  readonly #kept = new Map<string, Kept>()
  readonly #loads = new Map<string, Load>()

  /** `folder`: where the engine puts blobs, if it delivers them. */
  constructor(requests: Requests, folder: string | undefined) {
    this.#requests = requests
    this.#folder = folder
  }

  /** A task gets the same bytes each time it asks for a name. */
  get(task: Asker, name: string): Promise<Uint8Array> {
    checkName(name)
    task.blobs ??= new Map()
    let bytes = task.blobs.get(name)
    if (bytes === undefined) {
      bytes = this.#get(task, name)
      task.blobs.set(name, bytes)
      // A failed read may be tried again.
      bytes.catch(() => task.blobs?.delete(name))
    }
    return bytes
  }

  /** The task has ended: its blobs are kept only while there is room, and another task takes over what it was reading. */
  leave(task: Asker): void {
    for (const load of this.#loads.values()) {
      load.waiting.delete(task)
      if (load.carrier === task) load.carrierLeft()
    }
    for (const { users } of this.#kept.values()) users.delete(task)
    this.#trim()
  }

  async #get(task: Asker, name: string): Promise<Uint8Array> {
    const blob = (await this.#requests.ask(task, blobAsking(task, ['open', name], 'one'))) as BlobOpened
    const kept = this.#kept.get(blob.sha256)
    if (kept) return this.#use(task, blob.sha256, kept)
    if (task.settled) throw task.whyOver
    const load = this.#loads.get(blob.sha256) ?? this.#start(blob)
    load.waiting.add(task)
    const bytes = orAborted(task.signal, load.done.promise)
    return task.running ? this.#requests.stand(task.running, bytes) : bytes
  }

  #use(task: Asker, sha256: string, kept: Kept): Uint8Array {
    if (!task.settled) kept.users.add(task)
    this.#kept.delete(sha256)
    this.#kept.set(sha256, kept)
    return kept.bytes
  }

  #start(blob: BlobOpened): Load {
    const reader = new BlobReader(blob, this.#folder, this.#requests)
    const load: Load = {
      ...{ reader, done: Promise.withResolvers(), waiting: new Set() },
      ...{ carrier: undefined, carrierLeft: () => {} },
    }
    load.done.promise.catch(() => {})
    this.#loads.set(blob.sha256, load)
    // Start reading after the asking task was added.
    queueMicrotask(() => void this.#load(blob.sha256, load))
    return load
  }

  async #load(sha256: string, load: Load): Promise<void> {
    try {
      let bytes: Uint8Array | undefined
      // Another task may have arrived meanwhile.
      do bytes = await carry(load)
      while (bytes === undefined && load.waiting.size > 0)
      if (bytes === undefined) return
      const kept: Kept = { bytes, users: new Set(load.waiting) }
      this.#kept.set(sha256, kept)
      load.done.resolve(bytes)
      this.#trim()
    } catch (error) {
      load.done.reject(error)
    } finally {
      this.#loads.delete(sha256)
    }
  }

  #trim(): void {
    let idle = 0
    for (const { bytes, users } of this.#kept.values()) if (users.size === 0) idle += bytes.byteLength
    const last = [...this.#kept.keys()].at(-1)
    for (const [sha256, { bytes, users }] of this.#kept) {
      if (idle <= IDLE_BYTES) return
      if (users.size > 0 || sha256 === last) continue
      this.#kept.delete(sha256)
      idle -= bytes.byteLength
    }
  }
}

/** Reads on behalf of one task after the other until it is done. Undefined: no task waits any more. */
async function carry(load: Load): Promise<Uint8Array | undefined> {
  for (;;) {
    const [task] = load.waiting
    if (task === undefined) return undefined
    const left = new Promise<undefined>((resolve) => {
      load.carrier = task
      load.carrierLeft = () => resolve(undefined)
    })
    const bytes = await Promise.race([load.reader.read(task), left])
    if (bytes !== undefined) return bytes
  }
}

/** Rejects as soon as the task is cancelled, without waiting for the read. */
function orAborted<Result>(signal: AbortSignal, work: Promise<Result>): Promise<Result> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason)
    if (signal.aborted) return abort()
    signal.addEventListener('abort', abort, { once: true })
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })
}

function checkName(name: unknown): asserts name is string {
  if (typeof name === 'string' && name !== '' && name.length <= 256) return
  throw new ManyworldsError('BLOB_UNKNOWN', 'ctx.blob() takes the name of one of `blobs` of the run, or its SHA-256')
}
