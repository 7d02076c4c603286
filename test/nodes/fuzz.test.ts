import { execFileSync } from 'node:child_process'
import { hash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { WebSocket } from 'ws'
import { bundleHash } from '../../dist/bundle/content.js'
import { Runners } from '../../dist/index.js'
import { packBundle } from '../../dist/network/blob.js'
import { Ephemeral } from '../../dist/network/channel.js'
import { dial } from '../../dist/network/dial.js'
import { answerChallenge, type Hello, newSessionId } from '../../dist/network/handshake.js'
import { parseDriverMessage } from '../../dist/network/host-messages.js'
import { BLOB_STREAM, CHUNK_BYTES, HANDSHAKE_MS, NETWORK_PATH, NETWORK_VERSION } from '../../dist/network/limits.js'
import { double, whereAmI } from '../agents/nodes.ts'
import { share } from '../support/storm.ts'
import { type Daemon, startNode } from './daemon.ts'

/**
 * A node is called by whoever can reach it. Whatever they send: it goes on with the same process, the same memory and the
 * same drivers, and runs nothing. All of it happens while a driver is at work there.
 */

const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))
const root = mkdtempSync(join(tmpdir(), 'mw-fuzz-'))
const tokenFile = join(root, 'token')
const AT_ONCE = 60
const FATE_MS = 30_000
/** Thousands of connections: half a minute, and more where others compute as well. */
const SLOW_MS = 240_000

let daemon: Daemon
let token: string
let cache: string
let inputs = 0
let before: { fds: number; rssMb: number; startTicks: string }
let background: { stop(): void; readonly over: Promise<number> }
/** Every process that the node was seen to run. */
const children = new Set<number>()
let watching: NodeJS.Timeout

beforeAll(async () => {
  execFileSync(process.execPath, [MAIN, 'node', 'token', '--out', tokenFile], { stdio: 'ignore' })
  token = readFileSync(tokenFile, 'utf8').trim()
  const env: NodeJS.ProcessEnv = {
    ...{ ...process.env, TMPDIR: join(root, 'tmp'), HOME: join(root, 'home') },
    // With little memory, what is kept shows: as growth, or as the end of the process.
    NODE_OPTIONS: '--max-old-space-size=64 --max-semi-space-size=1',
  }
  for (const folder of [env.TMPDIR!, env.HOME!]) mkdirSync(folder)
  // The session of a driver whose messages seem altered on their way lasts until its lease has ended.
  const args = ['--token-file', tokenFile, '--max-connections', '400', '--max-drivers', '3000']
  daemon = await startNode({ args, env })
  cache = cacheOf(daemon.pid)
  background = workAllTheTime()
  watching = setInterval(() => {
    if (daemon.child.exitCode !== null || daemon.child.signalCode !== null) return
    // Until it runs something else, a child is a copy of the node itself: that is as far as one comes that cannot start.
    for (const pid of readFileSync(`/proc/${daemon.pid}/task/${daemon.pid}/children`, 'utf8').match(/\d+/g) ?? [])
      if (!['', commandOf(daemon.pid)].includes(commandOf(Number(pid)))) children.add(Number(pid))
  }, 20)
}, 60_000)

afterAll(async () => {
  clearInterval(watching)
  background?.stop()
  await Runners.shutdown()
  await daemon?.kill('SIGTERM')
  rmSync(root, { recursive: true, force: true })
})

function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8')
  } catch {
    return ''
  }
}

const cacheOf = (pid: number) => {
  const words = commandOf(pid).split('\0')
  return words[words.indexOf('--cache-dir') + 1]!
}

/** A driver with some tasks all the time: as long as its node answers. Resolves with how many were answered. */
function workAllTheTime() {
  let stopped = false
  async function* tasks() {
    while (!stopped) {
      yield whereAmI.task(20)
      await sleep(20)
    }
  }
  const config = { engineName: 'nodes', nodes: { addresses: [daemon.address], tokenFile }, workerNum: 1 } as const
  const over = Runners.runTask(tasks(), config).then((responses) => {
    for (const { answer, attempts } of responses.values()) expect([answer, attempts]).toEqual([daemon.pid, 1])
    return responses.size
  })
  over.catch(() => {})
  return { over, stop: () => void (stopped = true) }
}

function look() {
  const status = readFileSync(`/proc/${daemon.pid}/status`, 'utf8')
  const mb = (field: string) => Number(new RegExp(`${field}:\\s+(\\d+)`).exec(status)![1]) / 1024
  const stat = readFileSync(`/proc/${daemon.pid}/stat`, 'utf8')
  return {
    fds: readdirSync(`/proc/${daemon.pid}/fd`).length,
    rssMb: mb('VmRSS'),
    peakMb: mb('VmHWM'),
    startTicks: stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]!,
  }
}

/** Throws many inputs at the node, some at once. */
async function shower<T>(arbitrary: fc.Arbitrary<T>, count: number, one: (input: T) => Promise<void>): Promise<void> {
  await fc.assert(
    fc.asyncProperty(fc.array(arbitrary, { minLength: AT_ONCE, maxLength: AT_ONCE }), async (batch) => {
      await Promise.all(batch.map(one))
      expect(daemon.child.exitCode, daemon.output().slice(-2000)).toBeNull()
    }),
    // A node that is down can show nothing more.
    { numRuns: Math.ceil(count / AT_ONCE), endOnFailure: true },
  )
}

function callRaw(): Promise<Socket> {
  const socket = connect({ port: daemon.port, host: '127.0.0.1', allowHalfOpen: true })
  socket.on('error', () => {})
  return new Promise((resolve) => {
    socket.once('connect', () => resolve(socket))
    socket.once('close', () => resolve(socket))
  })
}

/** Whether the other end has closed it, within a time. */
async function isClosed(socket: Socket, withinMs: number): Promise<boolean> {
  socket.resume()
  if (socket.readableEnded || socket.destroyed) return true
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), withinMs)
    const closed = () => {
      clearTimeout(timer)
      resolve(true)
    }
    socket.once('end', closed)
    socket.once('close', closed)
  })
}

/** Whoever sends half of something may wait for an answer, or go. */
async function send(bytes: Uint8Array | string, waitMs = 15): Promise<void> {
  inputs++
  const socket = await callRaw()
  socket.write(bytes)
  await isClosed(socket, waitMs)
  socket.destroy()
}

const upgrade = (more: readonly string[] = [], first = `GET ${NETWORK_PATH} HTTP/1.1`) =>
  [
    first,
    'Host: node',
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==',
    ...more,
    '\r\n',
  ].join('\r\n')

/** A connection on which WebSocket is spoken from now on. */
async function callUpgraded(): Promise<Socket> {
  const socket = await callRaw()
  socket.write(upgrade())
  await new Promise<void>((resolve) => {
    let heard = ''
    socket.on('data', (chunk: Buffer) => {
      heard += chunk.toString('latin1')
      if (heard.includes('challenge')) resolve()
    })
    socket.once('close', () => resolve())
  })
  return socket
}

/** How the other end ends it: code and reason of its close frame. */
interface Fate {
  readonly code: number
  readonly reason: string
}

function fateOf(socket: WebSocket): Promise<Fate> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error('it was not closed')), FATE_MS)
    socket.once('close', (code, reason) => {
      clearTimeout(timer)
      resolve({ code, reason: reason.toString() })
    })
  })
}

interface Heard extends Fate {
  readonly words: readonly { type: string; code?: string; reason?: string }[]
}

/** Calls, hears the challenge, says something, and tells what came of it. */
async function shake(answer: (challenge: string) => readonly (string | Buffer)[]): Promise<Heard> {
  const socket = new WebSocket(`ws://${daemon.address}${NETWORK_PATH}`, { perMessageDeflate: false })
  socket.on('error', () => {})
  const words: Heard['words'][number][] = []
  socket.on('message', (bytes: Buffer, isBinary: boolean) => {
    if (isBinary) return
    const message = JSON.parse(bytes.toString())
    words.push(message)
    if (message.type === 'challenge') for (const word of answer(bytes.toString())) socket.send(word)
  })
  const fate = await fateOf(socket)
  return { ...fate, words: words.slice(1) }
}

/** What a driver that knows the token answers. */
function goodHello(challenge: string, terms: Partial<Hello> = {}, secret = token): Record<string, unknown> {
  const hello: Hello = { role: 'driver', session: newSessionId(), fresh: true, received: 0, ...terms }
  return JSON.parse(answerChallenge(challenge, secret, hello).text)
}

/** As a driver that knows the token. */
async function callAsDriver() {
  const { peer } = await dial({
    address: { host: '127.0.0.1', port: daemon.port, secure: false },
    token,
    tls: undefined,
    hello: { role: 'driver', session: newSessionId(), fresh: true, received: 0 },
  })
  const { socket } = peer
  const fate = fateOf(socket)
  fate.catch(() => {})
  const heard: { type: string; reason?: string }[] = []
  /** Text is not sealed. */
  const send = (message: string | Buffer) => (typeof message === 'string' ? socket.send(message) : peer.send(message))
  let wake = () => {}
  peer.listen(
    ({ bytes }) => {
      if (bytes[0] !== 0) return
      heard.push(JSON.parse(bytes.subarray(1).toString()))
      wake()
    },
    () => wake(),
  )
  return {
    ...{ fate, heard, send },
    control: (message: unknown) => send(control(JSON.stringify(message))),
    /** The next thing of such a type that is said. */
    hear: async (...types: string[]) => {
      while (socket.readyState === WebSocket.OPEN) {
        const at = heard.findIndex(({ type }) => types.includes(type))
        if (at >= 0) return heard.splice(at, 1)[0]!
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      }
      return undefined
    },
  }
}

const control = (text: string | Uint8Array) => Buffer.concat([Buffer.of(0), Buffer.from(text as string)])
const ack = (count: number) => {
  const bytes = Buffer.alloc(9, 2)
  bytes.writeDoubleLE(count, 1)
  return bytes
}
function piece(stream: number, content: Uint8Array, last = true): Buffer {
  const header = Buffer.of(1, 0, 0, 0, 0, last ? 1 : 0)
  header.writeUInt32LE(stream, 1)
  return Buffer.concat([header, content])
}

/** A frame as a client sends it, with a mask that changes nothing. */
function masked(first: number, content: string | Uint8Array): Buffer {
  const bytes = typeof content === 'string' ? Buffer.from(content, 'latin1') : content
  return Buffer.concat([Buffer.of(first, 128 + bytes.byteLength, 0, 0, 0, 0), bytes])
}

/** Puts a value in place of one that is somewhere inside; `steps` lead there. */
function replaced(message: unknown, steps: readonly number[], value: unknown): unknown {
  if (steps.length === 0 || typeof message !== 'object' || message === null) return value
  const keys = Object.keys(message)
  if (keys.length === 0) return value
  const key = keys[steps[0]! % keys.length]!
  const copy: Record<string, unknown> = Array.isArray(message) ? ([...message] as never) : { ...message }
  copy[key] = replaced(copy[key], steps.slice(1), value)
  return copy
}

/** After it nothing more is heard. What is right, or about a worker that is gone, is answered or passed over. */
function isFatal(message: string | Buffer): boolean {
  if (typeof message === 'string') return true
  if (message[0] === 0) return parseDriverMessage(message.subarray(1)) === undefined
  if (message[0] === 1) return message.byteLength < 6 || message.readUInt32LE(1) === 0
  return message[0] !== 2 || message.byteLength !== 9 || message.readDoubleLE(1) !== 0
}

/** It is the right message of a driver that is done. */
const takesLeave = (message: string | Buffer): boolean =>
  typeof message !== 'string' && message[0] === 0 && parseDriverMessage(message.subarray(1))?.type === 'bye'

const noise = fc.uint8Array({ minLength: 1, maxLength: 300 })
const word = fc.stringMatching(/^[!-~]{1,40}$/)
const sha = fc.uint8Array({ minLength: 32, maxLength: 32 }).map((bytes) => Buffer.from(bytes).toString('hex'))

/** What is sent, how much of it, and the sending of so much. */
const KINDS: [title: string, count: number, send: (count: number) => Promise<void>][] = [
  [
    'strangers speak no HTTP, or half of it',
    2000,
    async (count) => {
      const half = fc
        .tuple(
          fc.constantFrom(upgrade(), 'POST / HTTP/1.1\r\nContent-Length: 99\r\n\r\nx', 'GET / HTTP/1.1\r\n\r\n'),
          fc.nat(),
        )
        .map(([text, at]) => text.slice(0, 1 + (at % text.length)))
      const method = fc
        .tuple(fc.constantFrom('GET', 'POST', 'CONNECT', 'PRI', 'OPTIONS', 'TRACE'), word)
        .map(([verb, path]) => `${verb} ${path} HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n\r\n`)
      await shower(fc.oneof(noise, half, method), count, (bytes) => send(bytes))
    },
  ],
  [
    'strangers ask for another path, or as a browser, or with headers that are none',
    2000,
    async (count) => {
      const path = fc.oneof(
        fc.constantFrom(
          '//',
          '///',
          '/',
          '*',
          'http://[',
          '//[',
          '/manyworlds/',
          '/%',
          '\\',
          'http://x:99999999/',
          '/..',
        ),
        word,
      )
      const request = fc.oneof(
        path.filter((one) => one.split('?')[0] !== NETWORK_PATH).map((one) => upgrade([], `GET ${one} HTTP/1.1`)),
        fc
          .constantFrom('null', 'http://localhost', 'https://evil.example', '')
          .map((origin) => upgrade([`Origin: ${origin}`])),
        word.map((key) => upgrade().replace('AAAAAAAAAAAAAAAAAAAAAA==', key)),
        word.map((version) => upgrade().replace('13', version)),
        fc.nat(20_000).map((size) => upgrade([`X: ${'x'.repeat(8192 + size)}`])),
        fc.nat(2000).map((count) => upgrade(Array.from({ length: 100 + count }, (_, i) => `X${i}: x`))),
        word.map((text) => upgrade([`Sec-WebSocket-Extensions: ${text}`, `Sec-WebSocket-Protocol: ${text}`])),
        word.map((text) => upgrade([`Transfer-Encoding: ${text}`, 'Content-Length: 5'])),
        fc.constantFrom('POST', 'PUT', 'CONNECT').map((verb) => upgrade([], `${verb} ${NETWORK_PATH} HTTP/1.1`)),
        word.map((protocol) => upgrade().replace('websocket', protocol)),
      )
      await shower(request, count, (text) => send(text))
    },
  ],
  [
    'strangers send frames that are none of WebSocket’s',
    2000,
    async (count) => {
      const header = (first: number, second: number, more: Uint8Array) =>
        Buffer.concat([Buffer.of(first, second), more])
      const frame = fc.oneof(
        noise.map((bytes) => Buffer.from(bytes)),
        // Other opcodes, reserved bits, and without a mask.
        fc.tuple(fc.nat(255), fc.nat(125), noise).map(([first, length, more]) => header(first, length, more)),
        fc.tuple(fc.nat(255), fc.nat(125), noise).map(([first, length, more]) => header(first, 128 + length, more)),
        // Lengths that lie, and lengths beyond all limits.
        fc.tuple(fc.constantFrom(254, 255), noise).map(([length, more]) => header(0x82, length, more)),
        fc.tuple(fc.constantFrom(126, 127), noise).map(([length, more]) => header(0x82, length, more)),
        // Fragments without end; a continuation of nothing; a fragmented ping; a close of one byte.
        fc
          .nat(200)
          .map((count) => Buffer.concat([masked(0x02, 'a'), ...Array.from({ length: count }, () => masked(0, 'b'))])),
        fc.constantFrom(masked(0x80, 'a'), masked(0x09, 'a'), masked(0x88, 'a'), masked(0x81, '\xff\xfe')),
        fc
          .tuple(fc.nat(65_535), noise)
          .map(([code, text]) =>
            masked(0x88, Buffer.concat([Buffer.of(code >> 8, code & 255), Buffer.from(text).subarray(0, 100)])),
          ),
      )
      await shower(frame, count, async (bytes) => {
        inputs++
        const socket = await callUpgraded()
        socket.write(bytes)
        await isClosed(socket, 15)
        socket.destroy()
      })
    },
  ],
  [
    'strangers answer the challenge wrongly, and are told so',
    2400,
    async (count) => {
      const other = fc.oneof(
        fc.constantFrom<unknown>(
          -1,
          0.5,
          2 ** 60,
          null,
          undefined,
          '',
          [],
          {},
          true,
          'x'.repeat(3000),
          '\x1b[2J',
          '\n',
        ),
        fc.json().map((text) => [JSON.parse(text)]),
      )
      const field = fc.constantFrom(
        'type',
        'network',
        'version',
        'key',
        'proof',
        'role',
        'session',
        'fresh',
        'received',
      )
      let earlier = JSON.stringify({
        ...{ type: 'challenge', network: NETWORK_VERSION, version: '0.1.0', key: new Ephemeral().text },
      })
      type Answer = (challenge: string) => readonly (string | Buffer)[]
      const answer: fc.Arbitrary<Answer> = fc.oneof(
        fc.json().map(
          (text): Answer =>
            () => [text],
        ),
        fc.string({ maxLength: 200 }).map(
          (text): Answer =>
            () => [text],
        ),
        noise.map(
          (bytes): Answer =>
            () => [Buffer.from(bytes)],
        ),
        fc.constant<Answer>((challenge) => [Buffer.from(JSON.stringify(goodHello(challenge)))]),
        fc.nat(100_000).map(
          (size): Answer =>
            (challenge) => [JSON.stringify({ ...goodHello(challenge), more: 'x'.repeat(4096 + size) })],
        ),
        fc
          .tuple(field, other)
          // True is what the hello has.
          .filter(([name, value]) => !(name === 'fresh' && value === true))
          .map(
            ([name, value]): Answer =>
              (challenge) => [JSON.stringify({ ...goodHello(challenge), [name]: value })],
          ),
        field.map(
          (name): Answer =>
            (challenge) => [JSON.stringify({ ...goodHello(challenge), [name]: undefined })],
        ),
        // Proofs for another token, another challenge, another role, another session.
        word.map(
          (secret): Answer =>
            (challenge) => [JSON.stringify(goodHello(challenge, {}, secret))],
        ),
        fc.constant<Answer>((challenge) => {
          const replayed = [JSON.stringify(goodHello(earlier))]
          earlier = challenge
          return replayed
        }),
        fc.constantFrom('status', 'host').map(
          (role): Answer =>
            (challenge) => [JSON.stringify({ ...goodHello(challenge), role })],
        ),
        fc.constant<Answer>((challenge) => [JSON.stringify({ ...goodHello(challenge), session: newSessionId() })]),
        // With the token, but not for this end, or for a session that was never there.
        fc.constant<Answer>((challenge) => [JSON.stringify(goodHello(challenge, { role: 'host' }))]),
        fc.constant<Answer>((challenge) => [JSON.stringify(goodHello(challenge, { fresh: false }))]),
        // Another key than the proof is for, and keys whose shared secret is zero.
        fc.constant<Answer>((challenge) => [JSON.stringify({ ...goodHello(challenge), key: new Ephemeral().text })]),
        fc.constantFrom('A'.repeat(43), `AQ${'A'.repeat(41)}`).map(
          (key): Answer =>
            (challenge) => [JSON.stringify({ ...goodHello(challenge), key })],
        ),
        fc.nat(2 ** 30).map(
          (more): Answer =>
            (challenge) => [JSON.stringify({ ...goodHello(challenge), network: NETWORK_VERSION + 1 + more })],
        ),
      )
      await shower(answer, count, async (one) => {
        inputs++
        const { code, reason, words } = await shake(one)
        expect(words.map(({ type }) => type)).toEqual(['refused'])
        expect([code, reason]).toEqual([1008, words[0]!.code])
      })
    },
  ],
  [
    'somebody who says hello twice is not heard again',
    120,
    async (count) => {
      await shower(fc.nat(5), count, async (times) => {
        inputs++
        const { code, words } = await shake((challenge) =>
          Array.from({ length: 2 + times }, () => JSON.stringify(goodHello(challenge))),
        )
        expect(words.map(({ type }) => type)).toEqual(['welcome'])
        expect(code).toBe(1008)
      })
    },
  ],
  [
    'a driver that knows the token says what no driver says, and is told so',
    1200,
    async (count) => {
      const good = fc.constantFrom<object>(
        {
          ...{ type: 'place', driver: 'd', pid: 1, runtime: 'ab'.repeat(32), execArgv: ['-v'] },
          ...{ env: { A: 'b' }, output: 'show' },
        },
        { type: 'workers', workers: 3 },
        { type: 'kill', worker: 1 },
        { type: 'offer', sha256: 'cd'.repeat(32), bytes: 10 },
        { type: 'blob-offer', sha256: 'cd'.repeat(32), bytes: 10 },
        { type: 'blob-drop', sha256: 'cd'.repeat(32) },
        { type: 'credit', worker: 1, bytes: 1000 },
      )
      const other = fc.oneof(
        fc.anything(),
        fc.constantFrom<unknown>(
          -1,
          0.5,
          2 ** 60,
          null,
          undefined,
          '',
          [],
          {},
          '../../evil',
          'x'.repeat(2000),
          '\0',
          'bye',
        ),
      )
      const mutated = fc
        .tuple(good, fc.array(fc.nat(), { minLength: 1, maxLength: 3 }), other)
        .map(([message, steps, value]) => control(JSON.stringify(replaced(message, steps, value)) ?? ''))
      const message: fc.Arbitrary<string | Buffer> = fc.oneof(
        { weight: 6, arbitrary: mutated },
        { weight: 1, arbitrary: good.map((one) => control(JSON.stringify(one))) },
        { weight: 1, arbitrary: fc.json().map((text) => control(text)) },
        { weight: 1, arbitrary: noise.map((bytes) => control(bytes)) },
        { weight: 1, arbitrary: fc.string() },
        {
          weight: 1,
          arbitrary: fc.tuple(fc.integer({ min: 4, max: 255 }), noise).map(([kind, more]) => Buffer.of(kind, ...more)),
        },
        { weight: 1, arbitrary: fc.constantFrom(NaN, -1, 0.5, 1e9, Infinity, 0).map(ack) },
        { weight: 1, arbitrary: noise.map((bytes) => Buffer.of(2, ...bytes)) },
        { weight: 1, arbitrary: noise.map((bytes) => Buffer.of(1, ...bytes.subarray(0, 4))) },
        {
          weight: 4,
          arbitrary: fc
            .tuple(fc.nat(2 ** 32 - 2), noise, fc.boolean())
            .map(([to, more, last]) => piece(1 + to, more, last)),
        },
        { weight: 1, arbitrary: noise.map((bytes) => piece(0, bytes)) },
      )
      await shower(fc.array(message, { minLength: 1, maxLength: 12 }), count, async (messages) => {
        const driver = await callAsDriver()
        for (const one of messages) {
          inputs++
          driver.send(one)
          if (isFatal(one)) break
        }
        driver.send(control('and something that is wrong in any case'))
        const { code, reason } = await driver.fate
        // Among wrong messages there may be one that takes leave, as it should.
        if (code === 1000 && messages.some(takesLeave)) return
        expect(code).toBe(1008)
        expect(reason).not.toBe('')
      })
    },
  ],
  [
    'a driver sends code that was not offered, or is other than it was offered, or leaves its folder',
    360,
    async (count) => {
      const evil = fc.constantFrom(
        ...['../evil', '../../evil', 'a/../../../evil', '/evil', join(root, 'evil'), '..\\evil', 'c:evil', 'a\0evil'],
        ...['', '.', '..', 'x/', 'x'.repeat(5000), `${'d/'.repeat(3000)}x`, 'manyworlds.bundle.mjs/x'],
      )
      const bundle = fc.record({
        code: noise,
        path: evil,
        wrongHash: fc.boolean(),
        lie: fc.constantFrom(0, 0, 0, 1, -1),
      })
      await shower(fc.array(bundle, { minLength: 1, maxLength: 4 }), count, async (bundles) => {
        const driver = await callAsDriver()
        for (const { code, path, wrongHash, lie } of bundles) {
          inputs++
          const files = [
            { path: 'good', bytes: code },
            { path, bytes: code },
          ]
          const sha256 = wrongHash ? 'ef'.repeat(32) : bundleHash(code, files)
          const packed = packBundle({ sha256, code, files })
          driver.control({ type: 'offer', sha256, bytes: packed.byteLength + lie })
          await driver.hear('send')
          driver.send(piece(0, packed))
          if (lie !== 0) break
          expect(await driver.hear('refuse')).toMatchObject({ sha256 })
        }
        driver.control({
          type: 'place',
          driver: 'd',
          pid: 1,
          runtime: 'ab'.repeat(32),
          execArgv: [],
          env: {},
          output: 'drop',
        })
        driver.control({ type: 'workers', workers: 1 })
        if (bundles.every(({ lie }) => lie === 0)) {
          const { reason } = (await driver.hear('failed'))!
          expect(reason).toBe("the driver did not send the workers' program")
          driver.send(control('that is all'))
        }
        expect((await driver.fate).code).toBe(1008)
      })
      await shower(fc.tuple(noise, sha, fc.nat(3)), count, async ([bytes, sha256, kind]) => {
        inputs++
        const driver = await callAsDriver()
        if (kind === 0) driver.send(piece(0, bytes))
        if (kind === 1) for (let i = 0; i < 3; i++) driver.send(piece(0, Buffer.alloc(CHUNK_BYTES), false))
        if (kind === 2) for (let i = 0; i < 1000; i++) driver.control({ type: 'offer', sha256, bytes: i })
        if (kind === 3) {
          // Bytes that are no bundle at all.
          driver.control({ type: 'offer', sha256, bytes: bytes.byteLength })
          await driver.hear('send')
          driver.send(piece(0, bytes))
          expect(await driver.hear('refuse')).toMatchObject({ sha256 })
          // And more of one than was announced, in pieces.
          driver.control({ type: 'offer', sha256, bytes: CHUNK_BYTES })
          await driver.hear('send')
          for (let i = 0; i < 9; i++) driver.send(piece(0, Buffer.alloc(CHUNK_BYTES), false))
        }
        // If more bytes are on their way when the node closes the connection, its reason may be lost with a reset.
        expect([1006, 1008]).toContain((await driver.fate).code)
      })
    },
  ],
  [
    'a driver sends bytes of a blob that were not asked for, or other bytes than it has promised',
    240,
    async (count) => {
      const some = fc.uint8Array({ minLength: 1, maxLength: 300 })
      await shower(fc.tuple(some, sha, fc.nat(4)), count, async ([bytes, sha256, kind]) => {
        inputs++
        const driver = await callAsDriver()
        const offer = (size: number, name = sha256) => driver.control({ type: 'blob-offer', sha256: name, bytes: size })
        if (kind === 0) driver.send(piece(BLOB_STREAM, bytes))
        if (kind === 1) for (let i = 0; i < 3; i++) offer(10)
        if (kind === 2) {
          offer(bytes.byteLength)
          await driver.hear('blob-send')
          driver.send(piece(BLOB_STREAM, Buffer.concat([bytes, Buffer.of(0)])))
        }
        if (kind === 3) {
          offer(2 * CHUNK_BYTES)
          await driver.hear('blob-send')
          for (let i = 0; i < 3; i++) driver.send(piece(BLOB_STREAM, Buffer.alloc(CHUNK_BYTES), false))
        }
        if (kind === 4) {
          offer(bytes.byteLength)
          await driver.hear('blob-send')
          driver.send(piece(BLOB_STREAM, bytes))
          expect(await driver.hear('blob-refuse')).toMatchObject({ sha256, reason: expect.stringContaining('content') })
          // Those that are right are taken, also if they are empty.
          for (const right of [bytes, new Uint8Array(0)]) {
            offer(right.byteLength, hash('sha256', right))
            if (right.byteLength > 0) {
              await driver.hear('blob-send')
              driver.send(piece(BLOB_STREAM, right))
            }
            expect(await driver.hear('blob-have')).toMatchObject({ sha256: hash('sha256', right) })
            driver.control({ type: 'blob-drop', sha256: hash('sha256', right) })
          }
          driver.send(piece(BLOB_STREAM, bytes))
        }
        expect((await driver.fate).code).toBe(1008)
      })
    },
  ],
  [
    'a driver asks for workers that no process can be started with',
    3,
    async () => {
      const code = Buffer.from('process.exit(1)')
      const packed = packBundle({ sha256: '', code, files: [] })
      const sha256 = bundleHash(code, [])
      for (const env of [{ A: 'x'.repeat(300_000) }, { A: 'a\0b' }, { 'A\0': 'b' }]) {
        inputs++
        const driver = await callAsDriver()
        driver.control({ type: 'offer', sha256, bytes: packed.byteLength })
        const answer = await driver.hear('send', 'have')
        if (answer?.type === 'send') driver.send(piece(0, packed))
        driver.control({ type: 'place', driver: 'd', pid: 1, runtime: sha256, execArgv: [], env, output: 'drop' })
        driver.control({ type: 'workers', workers: 1 })
        expect((await driver.hear('failed'))?.reason).toMatch(/spawn|null bytes/)
        driver.control({ type: 'bye' })
        expect((await driver.fate).code).toBe(1000)
      }
    },
  ],
]

const say = async (socket: Promise<Socket>, words: string | Buffer) => {
  const connected = await socket
  connected.write(words)
  return connected
}

/** Guests that would stay for as long as they are let. */
const LINGERING: Record<string, () => Promise<Socket>> = {
  'says nothing': () => callRaw(),
  'says half a header': () => say(callRaw(), 'GET / HT'),
  'says half an upgrade': () => say(callRaw(), upgrade().slice(0, -2)),
  'asks for another path': () => say(callRaw(), upgrade([], 'GET /x HTTP/1.1')),
  'does not answer the challenge': () => callUpgraded(),
  'answers with half a frame': () => say(callUpgraded(), Buffer.of(0x82, 0xfe, 1)),
}

/** Resolves when it is on its way, or nobody takes it. */
const written = (socket: Socket, bytes: Buffer) =>
  new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, 3000)
    socket.write(bytes, () => {
      clearTimeout(timer)
      resolve()
    })
  })

describe('while a driver is at work on a node', () => {
  beforeAll(async () => {
    // A process that does something for the first time grows.
    for (const [, count, send] of KINDS) await send(Math.min(count, 2 * AT_ONCE))
    await sleep(1000)
    before = look()
    inputs = 0
  }, SLOW_MS)

  it.each(KINDS)(
    '%s',
    async (_title, count, send) => {
      await send(Math.min(count, share(2 * AT_ONCE, count)))
    },
    SLOW_MS,
  )

  it('guests that do not come to the point are sent away', async () => {
    const stayed = Object.entries(LINGERING).map(async ([who, come]) => {
      inputs++
      const socket = await come()
      const gone = await isClosed(socket, HANDSHAKE_MS + 30_000)
      socket.destroy()
      return gone ? [] : [who]
    })
    expect((await Promise.all(stayed)).flat()).toEqual([])
  })

  it('strangers who talk and do not listen do not fill its memory', { timeout: SLOW_MS }, async () => {
    const { rssMb } = look()
    const header = Buffer.from([0x82, 0xff, 0, 0, 0, 0, 0, 0x0f, 0, 0, 0, 0, 0, 0])
    const large = Buffer.concat([header, Buffer.alloc(0x0f0000)])
    const pings = Buffer.concat(Array.from({ length: 8000 }, () => masked(0x89, 'x'.repeat(120))))
    const talk = async (first: Buffer, then: Buffer) => {
      inputs++
      const socket = await callUpgraded()
      socket.removeAllListeners('data').pause()
      socket.write(first)
      for (let megabytes = 0; megabytes < 60 && !socket.destroyed; megabytes++) await written(socket, then)
      socket.destroy()
    }
    const many = (first: Buffer, then: Buffer) => Promise.all(Array.from({ length: 15 }, () => talk(first, then)))
    // Refused, and still talking.
    await many(masked(0x81, '{}'), large)
    // Questions whose answers nobody reads.
    await many(pings, pings)
    expect(daemon.child.exitCode ?? daemon.child.signalCode, daemon.output().slice(-2000)).toBeNull()
    expect(look().peakMb - rssMb).toBeLessThan(120)
  })

  it('all the time, the driver got its answers', async () => {
    background.stop()
    expect(await background.over).toBeGreaterThan(300)
    await Runners.shutdown()
  })

  it('and the node is the same as before', async () => {
    // The connection of the driver is gone, and its worker. The last guests may take a moment.
    await expect.poll(() => look().fds, { timeout: 30_000 }).toBeLessThanOrEqual(before.fds)
    const after = look()
    expect(inputs).toBeGreaterThan(share(1000, 10_000))
    expect(after.startTicks).toBe(before.startTicks)
    expect(daemon.output()).not.toMatch(/Error:|\bat .*:\d+:\d+/)
    expect(after.rssMb - before.rssMb).toBeLessThan(60)
    expect(children.size, 'only the worker of the driver was started').toBe(1)
    expect(writtenOutside()).toEqual([])
    expect(readdirSync(cache).filter((name) => !/^[0-9a-f]{64}$/.test(name))).toEqual([])
  })

  it('and serves the next driver', async () => {
    const tasks = Array.from({ length: 50 }, (_, n) => double.task(n))
    const responses = await Runners.runTask(tasks, {
      engineName: 'nodes',
      nodes: { addresses: [daemon.address], tokenFile },
    })
    expect([...responses.values()].map(({ answer }) => answer)).toEqual(tasks.map((_, n) => 2 * n))
  })
})

/** Files that are where none should be. A node has its own folder in TMPDIR, and its workers have what they compiled. */
function writtenOutside(): string[] {
  const own = /^(token$|home(\/\.cache(\/manyworlds(\/compiled.*)?)?)?$|tmp$|tmp\/manyworlds-node-)/
  const inRoot = readdirSync(root, { recursive: true })
    .map(String)
    .filter((path) => !own.test(path))
  const around = [cache, dirname(cache), '/', process.cwd()]
    .map((folder) => join(folder, 'evil'))
    .filter((path) => existsSync(path))
  return [...inRoot, ...around]
}
