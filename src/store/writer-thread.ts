import { parentPort } from 'node:worker_threads'
import { type Begun, type FromThread, isOurs, type Opened, type ToThread } from './messages.ts'
import { prune } from './prune.ts'
import { RunWriter, refuseMissing } from './run-writer.ts'
import { StoreDb } from './store-db.ts'
import { isBusy, isFull, storeError } from './store-errors.ts'

/** How long a disk may stay full before the run is given up, and how often it is tried again. */
const FULL_MS = 10_000
/** How long another process may hold the store: removing or importing a run of many gigabytes takes a while. */
const BUSY_MS = 120_000
const TRY_AGAIN_MS = 250
/** A store of many runs stays open for the next one: opening it costs more than a small run. */
const IDLE_MS = 1000

interface OpenStore {
  readonly db: StoreDb
  readonly shared: boolean
  /** Numbers of the runs that are open. */
  readonly runs: Set<number>
  users: number
  idle: NodeJS.Timeout | undefined
}

/**
 * The thread that writes runs, so that neither SQLite nor a slow disk holds up the driver. Everything is in order: a
 * message is answered before the next is looked at.
 */
const stores = new Map<string, OpenStore>()
const files = new Map<number, { writer: RunWriter; store: OpenStore }>()
const port = parentPort!
const say = (message: FromThread) => port.postMessage(message)

port.on('message', (message: unknown) => {
  if (!isOurs<ToThread>(message)) return
  if (message.type === 'close') return closeAll(message.done)
  const { file } = message
  const path = message.type === 'open' ? message.request.path : (files.get(file)?.writer.store.path ?? '')
  try {
    say({ type: 'done', file, ...handle(message) })
  } catch (error) {
    const { code, message: text } = storeError(error, path, message.type === 'open' ? 'open' : 'write')
    say({ type: 'failed', file, code, message: text })
  }
})

function handle(message: Exclude<ToThread, { type: 'close' }>): { opened?: Opened; begun?: Begun } {
  const { file } = message
  switch (message.type) {
    case 'open': {
      refuseMissing(message.request)
      const store = take(message.request.path, message.request.shared)
      try {
        const { writer, opened } = RunWriter.open(store.db, message.request, store.runs)
        files.set(file, { writer, store })
        return { opened }
      } catch (error) {
        giveBack(store)
        throw error
      }
    }
    case 'write': {
      const { rows, session } = message
      const begun = patiently(file, (writer) => writer.write(rows, session))
      if (!begun) return {}
      removeOlder(file)
      return { begun }
    }
    case 'end': {
      const open = files.get(file)
      if (!open) return {}
      const { ending } = message
      try {
        // A run that has failed has waited long enough.
        if (ending?.how === 'failed') open.writer.end(ending)
        else patiently(file, (writer) => writer.end(ending))
      } finally {
        files.delete(file)
        giveBack(open.store)
      }
      return {}
    }
  }
}

function removeOlder(file: number): void {
  const { writer, store } = files.get(file)!
  try {
    if (writer.keep && store.shared) prune(store.db, writer.keep)
  } catch (error) {
    // The next run tries again; this one has begun.
    const { message } = storeError(error, writer.store.path, 'write')
    say({ type: 'waiting', file, message: `older runs could not be removed: ${message}` })
  }
}

function take(path: string, shared: boolean): OpenStore {
  let store = stores.get(path)
  if (store && !store.db.isThere) {
    // Runs that are being written to it hear of that; a new one gets a new store.
    stores.delete(path)
    if (store.users === 0) close(store)
    store = undefined
  }
  if (store === undefined) {
    store = { db: StoreDb.open(path, shared), shared, runs: new Set(), users: 0, idle: undefined }
    stores.set(path, store)
  }
  clearTimeout(store.idle)
  store.users++
  return store
}

function giveBack(store: OpenStore): void {
  if (--store.users > 0) return
  if (!store.shared) return close(store)
  store.idle = setTimeout(() => close(store), IDLE_MS)
}

function close(store: OpenStore): void {
  clearTimeout(store.idle)
  if (stores.get(store.db.path) === store) stores.delete(store.db.path)
  store.db.close(!store.shared)
}

/** The process ends: what is open is left in order. */
function closeAll(done: Int32Array): void {
  for (const store of [...stores.values()]) close(store)
  Atomics.store(done, 0, 1)
  Atomics.notify(done, 0)
}

function writerOf(file: number): RunWriter {
  const open = files.get(file)
  if (!open) throw new Error('the thread that had it open has ended')
  return open.writer
}

/** A full disk, or a process that holds the store, often passes soon: nothing that was done should be lost to it. */
function patiently<T>(file: number, write: (writer: RunWriter) => T): T {
  const writer = writerOf(file)
  let said = false
  for (const began = Date.now(); ; pause()) {
    try {
      return write(writer)
    } catch (error) {
      const patience = isBusy(error) ? BUSY_MS : isFull(error) ? FULL_MS : 0
      const left = began + patience - Date.now()
      if (left <= 0) throw error
      if (said) continue
      said = true
      const { message } = storeError(error, writer.store.path, 'write')
      say({ type: 'waiting', file, message: `${message}. Waiting ${Math.ceil(left / 1000)} s for that` })
    }
  }
}

function pause(): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, TRY_AGAIN_MS)
}
