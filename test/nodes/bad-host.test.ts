import { hash, randomBytes } from 'node:crypto'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import fc from 'fast-check'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { type NodesOptions, Runners } from '../../dist/index.js'
import { dial } from '../../dist/network/dial.js'
import { type Gate, openGate } from '../../dist/network/gate.js'
import { newSessionId } from '../../dist/network/handshake.js'
import type { HostToDriver } from '../../dist/network/host-messages.js'
import { BEAT_MS, CHUNK_BYTES } from '../../dist/network/limits.js'
import type { Peer } from '../../dist/network/peer.js'
import { userToken } from '../../dist/network/token.js'
import { CODECS, encode, PLAIN } from '../../dist/protocol/codec.js'
import { PROTOCOL_VERSION } from '../../dist/protocol/messages.js'
import { reader } from '../agents/blobs.ts'
import { double, whereAmI } from '../agents/nodes.ts'
import { freePort } from '../support/free-port.ts'
import { share } from '../support/storm.ts'
import { type Daemon, startDaemon, startNode } from './daemon.ts'

/** One of two nodes is not what it says. The run is done by the other: every task once, and right. */

const TASKS = 60

let good: Daemon
const gates: Gate[] = []
const servers: Server[] = []
const connections: (Socket | Peer['socket'])[] = []

beforeAll(async () => {
  good = await startNode()
})
afterEach(async () => {
  await Runners.shutdown()
  for (const gate of gates.splice(0)) gate.close()
  for (const server of servers.splice(0)) server.close()
  for (const connection of connections.splice(0))
    'terminate' in connection ? connection.terminate() : connection.destroy()
})
afterAll(() => good.kill('SIGTERM'))

const ACK_OF_NOTHING = Buffer.from([2, 0, 0, 0, 0, 0, 0, 0, 0])
const INFO = {
  ...{ host: 'bad', pid: 1, version: '0.1.0', node: process.version, platform: 'linux-x64', cores: 2, memoryMb: 100 },
  ...{ workers: 2, labels: ['gpu'], leaseMs: 15_000 },
}

/** What a driver says to a host. */
interface Said {
  readonly type: string
  readonly sha256?: string
  readonly workers?: number
}

/** One connection of a driver with a host that says whatever the test wants. */
interface Guest {
  say(message: unknown): void
  data(stream: number, bytes: Uint8Array, last?: boolean): void
  raw(bytes: Buffer | string): void
  on(type: string, listener: (message: Said) => void): void
}

type Behavior = (guest: Guest) => void

/** Says nothing yet, but that it is there. */
function guestOn(peer: Peer): Guest {
  const { socket } = peer
  connections.push(socket)
  const listeners = new Map<string, (message: Said) => void>()
  const raw = (bytes: Buffer | string) => (typeof bytes === 'string' ? socket.send(bytes) : peer.send(bytes))
  peer.listen(
    ({ bytes }) => {
      if (bytes[0] !== 0) return
      const message = JSON.parse(bytes.subarray(1).toString()) as Said
      const listener = listeners.get(message.type)
      if (listener !== undefined) listener(message)
      // As a real one does. A driver waits for that for some seconds.
      else if (message.type === 'bye') socket.terminate()
    },
    () => {},
  )
  const beats = setInterval(() => raw(ACK_OF_NOTHING), BEAT_MS)
  socket.on('close', () => clearInterval(beats))
  return {
    raw,
    say: (message) => raw(Buffer.concat([Buffer.of(0), Buffer.from(JSON.stringify(message) ?? '')])),
    data: (stream, bytes, last = true) => {
      const header = Buffer.of(1, 0, 0, 0, 0, last ? 1 : 0)
      header.writeUInt32LE(stream, 1)
      raw(Buffer.concat([header, bytes]))
    },
    on: (type, listener) => listeners.set(type, listener),
  }
}

/** A node that drivers call, and that behaves like this. */
async function badHost(behave: Behavior): Promise<{ address: string; calls(): number }> {
  let calls = 0
  const gate = await openGate({
    ...{ host: '127.0.0.1', port: 0, token: userToken(), tls: undefined, maxConnections: 1000 },
    admit: () => 0,
    refused: () => {},
    accept: (peer) => {
      calls++
      behave(guestOn(peer))
    },
  })
  gates.push(gate)
  return { address: `127.0.0.1:${gate.port}`, calls: () => calls }
}

/** Takes all code without looking at it, and says what it says when it is asked for workers. */
const taking =
  (then: Behavior): Behavior =>
  (guest) => {
    guest.say({ type: 'host', info: INFO })
    guest.on('offer', ({ sha256 }) => guest.say({ type: 'have', sha256 }))
    guest.on('workers', () => then(guest))
  }

const started = (worker: number) => ({ type: 'started', worker, place: worker, pid: 1 })
const ready = encode(
  [{ type: 'ready', protocol: PROTOCOL_VERSION, codecs: CODECS, node: process.version, pid: 1 }],
  PLAIN,
)

const runWith = (...bad: string[]) => run({ addresses: [...bad, good.address] })

async function run(nodes: NodesOptions): Promise<void> {
  const tasks = Array.from({ length: TASKS }, (_, n) => double.task(n, { id: `t${n}` }))
  const responses = await Runners.runTask(tasks, { engineName: 'nodes', nodes, keepWarmMs: 0 })
  expect([...responses].map(([id, { answer }]) => [id, answer])).toEqual(tasks.map((_, n) => [`t${n}`, 2 * n]))
}

/** One of each: the compiler finds one that was forgotten. */
const BY_TYPE: { readonly [Type in HostToDriver['type']]: Extract<HostToDriver, { type: Type }> } = {
  host: { type: 'host', info: INFO },
  started: { type: 'started', worker: 1, place: 0, pid: 7 },
  ended: { type: 'ended', worker: 1, exit: { code: 1, signal: null, reason: 'r', lastWords: 'w', stderr: 's' } },
  failed: { type: 'failed', reason: 'r' },
  have: { type: 'have', sha256: 'ab'.repeat(32) },
  send: { type: 'send', sha256: 'ab'.repeat(32) },
  refuse: { type: 'refuse', sha256: 'ab'.repeat(32), reason: 'r' },
  'blob-have': { type: 'blob-have', sha256: 'ab'.repeat(32) },
  'blob-send': { type: 'blob-send', sha256: 'ab'.repeat(32) },
  'blob-refuse': { type: 'blob-refuse', sha256: 'ab'.repeat(32), reason: 'r' },
  drain: { type: 'drain', reason: 'r' },
  output: { type: 'output', place: 0, text: '' },
  notice: { type: 'notice', line: 'l' },
  'others-wait': { type: 'others-wait' },
  credit: { type: 'credit', worker: 1, bytes: 5 },
  bye: { type: 'bye', reason: 'r' },
}
const MESSAGES = Object.values(BY_TYPE)

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

let delay = 1
const BEHAVIOURS: Record<string, Behavior> = {
  // Not even when the driver leaves.
  'says nothing at all': ({ on }) => on('bye', () => {}),
  'says what it is, and then nothing': ({ say }) => say({ type: 'host', info: INFO }),
  'does not take the code': ({ say, on }) => {
    say({ type: 'host', info: INFO })
    on('offer', ({ sha256 }) => say({ type: 'refuse', sha256, reason: 'no' }))
  },
  'does not take the code, after a while': ({ say, on }) => {
    say({ type: 'host', info: INFO })
    on('offer', ({ sha256 }) => {
      // At a moment when the other node is there, and is getting its code.
      setTimeout(() => say({ type: 'refuse', sha256, reason: 'no' }), 10 * delay++)
    })
  },
  'asks for the code again and again': ({ say, on }) => {
    say({ type: 'host', info: INFO })
    on('offer', ({ sha256 }) => {
      for (let i = 0; i < 2000; i++) say({ type: 'send', sha256 })
    })
  },
  'takes the first piece of code, and no other': ({ say, on }) => {
    say({ type: 'host', info: INFO })
    let taken = 0
    on('offer', ({ sha256 }) => {
      if (taken++ === 0) say({ type: 'have', sha256 })
    })
  },
  'cannot start workers': taking(({ say }) => say({ type: 'failed', reason: 'no Node here' })),
  'starts none': taking(() => {}),
  'starts workers that say nothing': taking(({ say }) => {
    say(started(1))
    say(started(2))
  }),
  'starts a worker twice': taking(({ say }) => {
    say(started(1))
    say(started(1))
  }),
  'starts workers before it has said what it is': ({ say }) => say(started(1)),
  'starts far more workers than it has places': taking(({ say }) => {
    for (let worker = 1; worker < 3000; worker++) say(started(worker))
  }),
  'starts workers that nobody asked for': ({ say }) => {
    say({ type: 'host', info: INFO })
    say(started(1))
  },
  'says again and again what it is': ({ say }) => {
    for (let i = 0; i < 2000; i++) say({ type: 'host', info: INFO })
  },
  'starts workers that speak noise': taking(({ say, data }) => {
    say(started(1))
    data(1, Buffer.from('noise'))
  }),
  'starts workers that speak noise after a while, and does not end them': taking(({ say, data }) => {
    say(started(1))
    data(1, ready)
    setTimeout(() => data(1, Buffer.from('noise')), 300)
  }),
  'sends frames of workers that are not there': taking(({ say, data }) => {
    say(started(1))
    data(77, Buffer.from('of a worker that is not there'))
    say({ type: 'ended', worker: 78, exit: { code: 1, signal: null } })
    say({ type: 'credit', worker: 79, bytes: 1 })
  }),
  'ends its workers as soon as they are there': taking(({ say }) => {
    for (let worker = 1; worker < 50; worker++) {
      say(started(worker))
      say({ type: 'ended', worker, exit: { code: 1, signal: null, stderr: 'no' } })
    }
  }),
  'sends more than it has credit for': taking(({ say, data }) => {
    say(started(1))
    for (let i = 0; i < 300; i++) data(1, Buffer.alloc(CHUNK_BYTES), false)
  }),
  'says good-bye at once': taking(({ say }) => say({ type: 'bye', reason: 'enough' })),
  'goes away at once': taking(({ say }) => say({ type: 'drain', reason: 'enough' })),
  'sends text': taking(({ raw }) => raw('text')),
  'acknowledges what was never sent': taking(({ raw }) => raw(Buffer.alloc(9, 2))),
}

test.each(Object.entries(BEHAVIOURS))(
  'a node that %s',
  async (_how, behave) => {
    const { address, calls } = await badHost(behave)
    await runWith(address)
    expect(calls()).toBeGreaterThan(0)
    // It is not called without end.
    expect(calls()).toBeLessThan(30)
  },
  120_000,
)

test('a node that starts workers without end is sent away with a reason, soon', async () => {
  const { promise: reason, resolve } = Promise.withResolvers<string>()
  let said = 0
  const { address } = await badHost(
    taking(async ({ say }) => {
      const socket = connections.at(-1) as Peer['socket']
      socket.once('close', (_code: number, why: Buffer) => resolve(why.toString()))
      // The driver, which is this process too, gets its turn after each hundred.
      for (; said < 20_000 && socket.readyState === socket.OPEN; await nextTurn())
        for (let i = 0; i < 100; i++) say(started(++said))
    }),
  )
  await runWith(address)
  expect(await reason).toMatch(/^more workers than requested \(\d+\)$/)
  expect(said).toBeLessThan(20_000)
})

/** It takes the code, and is offered a blob. */
const offered =
  (then: (guest: Guest, sha256: string) => void): Behavior =>
  (guest) => {
    guest.say({ type: 'host', info: INFO })
    guest.on('offer', ({ sha256 }) => guest.say({ type: 'have', sha256 }))
    guest.on('blob-offer', ({ sha256 }) => then(guest, sha256!))
  }

test.each<[string, Behavior]>([
  ['says nothing', offered(() => {})],
  ['wants it again and again', offered(({ say }, sha256) => [1, 2, 3].map(() => say({ type: 'blob-send', sha256 })))],
  [
    'has it before it was sent',
    offered(({ say }, sha256) => {
      say({ type: 'blob-send', sha256 })
      say({ type: 'blob-have', sha256 })
    }),
  ],
  ['has another one', offered(({ say }) => say({ type: 'blob-have', sha256: 'ab'.repeat(32) }))],
  ['does not want it', offered(({ say }, sha256) => say({ type: 'blob-refuse', sha256, reason: 'no' }))],
  [
    'takes all of it, and then does not want it',
    offered(({ say }, sha256) => {
      say({ type: 'blob-send', sha256 })
      setTimeout(() => say({ type: 'blob-refuse', sha256, reason: 'no' }), 300)
      setTimeout(() => say({ type: 'blob-refuse', sha256, reason: 'no' }), 600)
    }),
  ],
])(
  'a node that is offered a blob and %s holds up nobody',
  async (_how, behave) => {
    const { address, calls } = await badHost(behave)
    const weights = randomBytes(10_000_000)
    const responses = await Runners.runTask(
      Array.from({ length: 20 }, () => reader.task({ name: 'weights' })),
      { engineName: 'nodes', nodes: { addresses: [address, good.address] }, keepWarmMs: 0, blobs: { weights } },
    )
    expect(new Set([...responses.values()].map(({ answer }) => answer?.sha256))).toEqual(
      new Set([hash('sha256', weights)]),
    )
    expect(calls()).toBeGreaterThan(0)
  },
  120_000,
)

test('two hosts of one machine are offered a blob one after the other: what the first has, the second may share', async () => {
  const said: string[] = []
  const slow = (name: string) =>
    offered(({ say }, sha256) => {
      said.push(`${name} is offered it`)
      setTimeout(() => {
        said.push(`${name} has it`)
        say({ type: 'blob-have', sha256 })
      }, 300)
    })
  const hosts = await Promise.all([badHost(slow('one')), badHost(slow('another'))])
  const weights = randomBytes(1000)
  const addresses = [...hosts.map(({ address }) => address), good.address]
  const config = { engineName: 'nodes', nodes: { addresses } } as const
  // Both are there, and can be used, before the blob comes.
  await Runners.runTask(
    Array.from({ length: 8 }, () => whereAmI.task(300)),
    config,
  )
  // Tasks until the second was asked, however long that takes.
  const until = Date.now() + 60_000
  function* tasks() {
    while (said.length < 3 && Date.now() < until) yield reader.task({ name: 'weights', ms: 300 })
  }
  for await (const { success } of Runners.streamTask(tasks(), { ...config, blobs: { weights } }))
    expect(success).toBe(true)
  const [first, second] = said[0]!.startsWith('one') ? ['one', 'another'] : ['another', 'one']
  expect(said.slice(0, 3)).toEqual([`${first} is offered it`, `${first} has it`, `${second} is offered it`])
}, 120_000)

test('a machine that takes the call and says nothing', async () => {
  const server = createServer((socket) => connections.push(socket))
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  await runWith(`127.0.0.1:${(server.address() as { port: number }).port}`)
})

test('nodes that say something a little wrong', async () => {
  const other = fc.oneof(
    fc.anything(),
    fc.constantFrom<unknown>(
      -1,
      0,
      0.5,
      1,
      2 ** 60,
      100_000,
      null,
      undefined,
      '',
      [],
      {},
      'x'.repeat(2000),
      '\0',
      'bye',
    ),
  )
  const wrong = fc
    .tuple(fc.constantFrom(...MESSAGES), fc.array(fc.nat(), { minLength: 1, maxLength: 3 }), other, fc.boolean())
    .map(([message, steps, value, late]): Behavior => {
      const mutated = replaced(message, steps, value)
      return late ? taking(({ say }) => say(mutated)) : ({ say }) => say(mutated)
    })
  await fc.assert(
    fc.asyncProperty(fc.array(wrong, { minLength: 40, maxLength: 40 }), async (behaviors) => {
      const hosts = await Promise.all(behaviors.map(badHost))
      await runWith(...hosts.map(({ address }) => address))
    }),
    { numRuns: share(2, 12), endOnFailure: true },
  )
}, 240_000)

test('nodes of all these kinds join a run, and strangers with nothing to say', async () => {
  const port = await freePort()
  const done = run({ listen: `127.0.0.1:${port}` })
  const address = { host: '127.0.0.1', port, secure: false }
  const join = () =>
    dial({
      ...{ address, token: undefined, tls: undefined },
      hello: { role: 'host', session: newSessionId(), fresh: true, received: 0 },
    })
  await expect.poll(() => join().then(({ peer }) => peer.socket.terminate())).toBeUndefined()
  for (const behave of Object.values(BEHAVIOURS)) behave(guestOn((await join()).peer))
  for (const noise of ['', 'noise', 'GET // HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n']) {
    const socket = connect(port, '127.0.0.1').on('error', () => {})
    connections.push(socket)
    socket.write(noise)
  }
  const node = startDaemon({ args: ['--connect', `127.0.0.1:${port}`, '--workers', '2'] })
  await done
  await node.kill('SIGTERM')
}, 120_000)
