import { parentPort } from 'node:worker_threads'
import { lookUp } from './cached-replies.ts'
import { type FromThread, isOurs, type ToThread } from './messages.ts'
import { prune } from './prune.ts'
import { RunWriter, refuseMissing } from './run-writer.ts'
import { StoreDb } from './store-db.ts'
import { isBusy, isFull, storeError } from './store-errors.ts'

/** How long to retry on a full disk before the run fails. */
const FULL_MS = 10_000
/** How long to retry while another process holds the lock. Importing a run of many gigabytes takes a while. */
const BUSY_MS = 120_000
const TRY_AGAIN_MS = 250
/** A shared store stays open for the next run, because opening it costs more than a small run. */
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
 * The thread that writes runs, so that SQLite and a slow disk don't block the driver's event loop. Messages are handled one
 * after the other.
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

type Answer = Omit<Extract<FromThread, { type: 'done' }>, 'type' | 'file'>

function handle(message: Exclude<ToThread, { type: 'close' }>): Answer {
  const { file } = message
  switch (message.type) {
    case 'open': {
      refuseMissing(message.request)
      const store = acquire(message.request.path, message.request.shared)
      try {
        const { writer, opened } = RunWriter.open(store.db, message.request, store.runs)
        files.set(file, { writer, store })
        return { opened }
      } catch (error) {
        release(store)
        throw error
      }
    }
    case 'write': {
      const { rows, session } = message
      const begun = withRetries(file, (writer) => writer.write(rows, session))
      if (!begun) return {}
      removeOlder(file)
      return { begun }
    }
    case 'lookUp':
      return { found: lookUp(writerOf(file).store, message.keys) }
    case 'end': {
      const open = files.get(file)
      if (!open) return {}
      const { ending } = message
      try {
        // A failed run has already waited.
        if (ending?.how === 'failed') open.writer.end(ending)
        else withRetries(file, (writer) => writer.end(ending))
      } finally {
        files.delete(file)
        release(open.store)
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
    // The run has begun. The next run tries again.
    const { message } = storeError(error, writer.store.path, 'write')
    say({ type: 'waiting', file, message: `cannot remove older runs: ${message}` })
  }
}

function acquire(path: string, shared: boolean): OpenStore {
  let store = stores.get(path)
  if (store && !store.db.exists) {
    // Open runs of the old file fail with STORE_FAILED at their next commit; a new run gets a new store.
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

function release(store: OpenStore): void {
  if (--store.users > 0) return
  if (!store.shared) return close(store)
  store.idle = setTimeout(() => close(store), IDLE_MS)
}

function close(store: OpenStore): void {
  clearTimeout(store.idle)
  if (stores.get(store.db.path) === store) stores.delete(store.db.path)
  store.db.close(!store.shared)
}

/** The process exits: close all stores. */
function closeAll(done: Int32Array): void {
  for (const store of [...stores.values()]) close(store)
  Atomics.store(done, 0, 1)
  Atomics.notify(done, 0)
}

function writerOf(file: number): RunWriter {
  const open = files.get(file)
  if (!open) throw new Error('the run file is not open in the writer thread, which was restarted')
  return open.writer
}

/** Retries while the disk is full or another process holds the lock: both often pass, and no finished work should be lost. */
function withRetries<T>(file: number, write: (writer: RunWriter) => T): T {
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
      say({ type: 'waiting', file, message: waitingText(error, writer.store.path, left) })
    }
  }
}

function waitingText(error: unknown, path: string, ms: number): string {
  const seconds = Math.ceil(ms / 1000)
  if (isFull(error)) return `the disk is full: cannot write ${path}. Waiting up to ${seconds} s for free space`
  const { message } = error as Error
  return `another process holds the write lock of ${path} (SQLite: ${message}). Waiting up to ${seconds} s for the lock`
}

function pause(): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, TRY_AGAIN_MS)
}
