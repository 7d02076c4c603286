import { parentPort } from 'node:worker_threads'
import { type FromThread, isOurs, type Opened, type ToThread } from './messages.ts'
import { RunWriter } from './run-writer.ts'
import { mayPass, storeError } from './store-errors.ts'

/** How long a full disk may stay full before the run is given up, and how often it is tried again. */
const PATIENCE_MS = 10_000
const TRY_AGAIN_MS = 250

/**
 * The thread that writes run files, so that neither SQLite nor a slow disk holds up the driver. Everything is in order:
 * a message is answered before the next is looked at.
 */
const files = new Map<number, RunWriter>()
const port = parentPort!
const say = (message: FromThread) => port.postMessage(message)

port.on('message', (message: unknown) => {
  if (!isOurs<ToThread>(message)) return
  const { file } = message
  const path = message.type === 'open' ? message.request.path : (files.get(file)?.path ?? '')
  try {
    say({ type: 'done', file, ...handle(message) })
  } catch (error) {
    const { code, message: text } = storeError(error, path, message.type === 'open' ? 'open' : 'write')
    say({ type: 'failed', file, code, message: text })
  }
})

function handle(message: ToThread): { opened?: Opened } {
  const { file } = message
  switch (message.type) {
    case 'open': {
      const { writer, opened } = RunWriter.open(message.request)
      files.set(file, writer)
      return { opened }
    }
    case 'begin':
      patiently(file, (writer) => writer.begin(message.session))
      return {}
    case 'write':
      patiently(file, (writer) => writer.write(message.rows))
      return {}
    case 'end': {
      const writer = files.get(file)
      files.delete(file)
      writer?.end(message.ending)
      return {}
    }
  }
}

function writerOf(file: number): RunWriter {
  const writer = files.get(file)
  if (!writer) throw new Error('the thread that had it open has ended')
  return writer
}

/** A full disk is often somebody else's mistake, and soon mended: nothing that was done should be lost to it. */
function patiently(file: number, write: (writer: RunWriter) => void): void {
  const writer = writerOf(file)
  let said = false
  for (const until = Date.now() + PATIENCE_MS; ; pause()) {
    try {
      return write(writer)
    } catch (error) {
      if (!mayPass(error) || Date.now() > until) throw error
      if (said) continue
      said = true
      const { message } = storeError(error, writer.path, 'write')
      say({ type: 'waiting', file, message: `${message}. Waiting ${PATIENCE_MS / 1000} s for that` })
    }
  }
}

function pause(): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, TRY_AGAIN_MS)
}
