import { spawn } from 'node:child_process'
import { appendFileSync, writeSync } from 'node:fs'
import { serialize } from 'node:v8'
import { defineAgent } from '../../dist/index.js'
import { CODECS, encode } from '../../dist/protocol/codec.js'

/** Tasks that do not go through this package, but write to the descriptors of their worker: 3 has frames, 4 is its watchdog's. */

const framed = (frame: Uint8Array): Buffer => {
  const header = Buffer.alloc(4)
  header.writeUInt32LE(frame.byteLength)
  return Buffer.concat([header, frame])
}
const say = (...messages: unknown[]): Buffer => framed(encode(messages, CODECS[0]!))
const done = (lease: number, steps: unknown[], status: number, value: unknown) =>
  say({ type: 'done', records: [[lease, steps, []]], outcomes: [[lease, status, value, 1]] })
const error = { code: 'TASK_THREW', name: 'Error', message: 'm', stack: undefined }
/** An array of v8's that claims 33 million places, and has none. */
const claims = Uint8Array.from([
  0xff,
  serialize(null)[1]!,
  0x61,
  0xc0,
  0x8c,
  0xde,
  0x0f,
  0x40,
  0,
  0xc0,
  0x8c,
  0xde,
  0x0f,
])
const MB = 1024 * 1024

const FORGERIES: Readonly<Record<string, (lease: number) => void>> = {
  'a step that is null': (lease) => write(3, done(lease, ['null'], 0, 1)),
  'a step that is no JSON': (lease) => write(3, done(lease, ['{'], 0, 1)),
  'a step that is no value': (lease) => write(3, done(lease, [Uint8Array.of(1)], 0, 1)),
  'an error that is null': (lease) => write(3, done(lease, [], 1, null)),
  'an error that is a number': (lease) => write(3, done(lease, [], 1, 5)),
  'an error whose stack is a number': (lease) => write(3, done(lease, [], 1, { ...error, stack: 5 })),
  'an error whose message is missing': (lease) => write(3, done(lease, [], 2, { ...error, message: undefined })),
  'an error with bytes that are noise': (lease) => write(3, done(lease, [], 1, { ...error, thrown: Uint8Array.of(1) })),
  'an error with text that is no JSON': (lease) => write(3, done(lease, [], 1, { ...error, thrown: new String('{') })),
  'an exit notice with bytes that are noise': (lease) =>
    write(3, say({ type: 'exiting', lease, error: { ...error, thrown: Uint8Array.of(1) } })),
  'steps of a task that then crashes': (lease) => {
    write(3, say({ type: 'done', records: [[lease, ['null', '{'], []]], outcomes: [] }))
    process.kill(process.pid, 'SIGKILL')
  },
  'an answer that claims 33 million places': (lease) => write(3, done(lease, [], 0, claims)),
  'a frame that claims 33 million places': () => write(3, framed(claims)),
  'JSON after the codec was agreed on': (lease) => write(3, framed(encode([{ type: 'loaded', agent: lease }], 'json'))),
  '64 MB of digits for the watchdog': () => {
    const digits = Buffer.alloc(64 * 1024, '9')
    for (let i = 0; i < 1024; i++) write(4, digits)
  },
  '600 MB of last words': () => {
    write(4, Buffer.from('!'))
    const words = Buffer.alloc(MB, '!')
    for (let i = 0; i < 600; i++) write(4, words)
  },
  'last words that are none': () => {
    write(4, Buffer.from('!null\n'))
    process.kill(process.pid, 'SIGKILL')
  },
  'last words with a stack that is a number': (lease) => {
    write(4, Buffer.from(`!${JSON.stringify({ blocked: true, lease, stack: 5 })}\n`))
    process.kill(process.pid, 'SIGKILL')
  },
}
export const FORGERY_NAMES: readonly string[] = Object.keys(FORGERIES)

export const forger = defineAgent({
  name: 'forger',
  run(name: string, ctx) {
    FORGERIES[name]!((ctx as unknown as { lease: number }).lease)
    return new Promise<never>(() => {})
  },
})

const AGAIN: Readonly<Record<string, (lease: number) => void>> = {
  'returns its own lease': (lease) => write(3, say({ type: 'returned', unstarted: [lease] })),
  'returns its own lease, and answers': (lease) => {
    write(3, say({ type: 'returned', unstarted: [lease] }))
    write(3, done(lease, [], 0, 1))
  },
  'retires, and returns its own lease': (lease) =>
    write(3, say({ type: 'retire', reason: 'because', unstarted: [lease] })),
  'blames an unknown lease, and breaks off': (lease) => {
    write(3, say({ type: 'exiting', lease: lease + 1000, error }))
    write(3, framed(Uint8Array.of(1)))
  },
  'blames an unknown lease, and dies': (lease) => {
    write(3, say({ type: 'exiting', lease: lease + 1000, error }))
    process.kill(process.pid, 'SIGKILL')
  },
  'dies, and leaves a process that holds its connection': () => {
    // Without the variable by which the driver would find it.
    spawn('sleep', ['30'], { detached: true, stdio: ['ignore', 'ignore', 'ignore', 3, 'ignore', 5], env: {} })
    process.kill(process.pid, 'SIGKILL')
  },
  'says that an unknown task has blocked the event loop': () => {
    write(4, Buffer.from(`!${JSON.stringify({ blocked: true, lease: 1_000_000, stack: '' })}\n`))
    process.kill(process.pid, 'SIGKILL')
  },
}
export const AGAIN_NAMES: readonly string[] = Object.keys(AGAIN)

/** Wants to run again without being charged. Each start is a line in a file. */
export const wantsAgain = defineAgent({
  name: 'wants-again',
  run({ how, file }: { how: string; file: string }, ctx) {
    appendFileSync(file, `${ctx.task.id}\n`)
    AGAIN[how]!((ctx as unknown as { lease: number }).lease)
    return new Promise<never>(() => {})
  },
})

export const good = defineAgent({ name: 'good', run: (n: number) => 2 * n })

function write(fd: number, bytes: Buffer): void {
  for (let at = 0; at < bytes.length; ) {
    try {
      at += writeSync(fd, bytes, at)
    } catch (thrown) {
      if ((thrown as NodeJS.ErrnoException).code !== 'EAGAIN') throw thrown
    }
  }
}
