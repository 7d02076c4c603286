import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import fc from 'fast-check'
import { afterEach, it } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import { frameReader } from '../../dist/engines/frames.js'
import { RemoteLink } from '../../dist/engines/nodes/remote-link.js'
import { RayLink } from '../../dist/engines/ray/ray-link.js'
import { LocalRuntime, type RuntimeEngine, type WorkerLink } from '../../dist/index.js'
import { parseDriverMessage, parseHostMessage } from '../../dist/network/host-messages.js'
import { Mux } from '../../dist/network/mux.js'
import { Peer } from '../../dist/network/peer.js'
import { KIND, Session } from '../../dist/network/session.js'
import { startLinks } from '../../dist/testing/cases/links.js'
import { answerTo, checkLink, type LinkStep } from '../../dist/testing/link-property.js'
import { NiceEngine } from '../../examples/custom-engine/nice-engine.ts'

/**
 * What every link promises, with sizes and moments of fast-check's choice. The conformance kit checks the same property
 * on every engine, on real nodes and clusters (`src/testing/cases/links.ts`).
 */

const endings: (() => unknown)[] = []
afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end()
})

const step: fc.Arbitrary<LinkStep> = fc.record({
  bytes: fc.oneof(fc.nat(100), fc.integer({ min: 1 << 14, max: 1 << 17 }), fc.nat(1 << 21)),
  urgent: fc.array(fc.nat(5000), { maxLength: 5 }),
  stallMs: fc.oneof({ weight: 9, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.nat(10) }),
  answerBytes: fc.oneof(fc.nat(100), fc.nat(1 << 17)),
})
const steps = fc.array(step, { minLength: 1, maxLength: 60, size: 'max' })

/** `make` gives a new link; `moments` are for those whose other end is not a process of its own. */
const property = (numRuns: number, make: (moments: () => number) => Promise<WorkerLink>) =>
  fc.assert(
    fc.asyncProperty(steps, fc.infiniteStream(fc.nat(3)), async (planned, moments) => {
      const link = await make(() => moments.next().value)
      try {
        await checkLink(link, planned)
      } finally {
        for (const end of endings.splice(0).reverse()) await end()
      }
    }),
    { numRuns, endOnFailure: true },
  )

async function linkOf(engine: RuntimeEngine): Promise<WorkerLink> {
  const { next, stop } = await startLinks(engine)
  endings.push(stop)
  return next()
}

it('the link of the local engine', { timeout: 120_000 }, () => property(15, () => linkOf(new LocalRuntime())))

it('the link of the example engine', { timeout: 120_000 }, () => property(15, () => linkOf(new NiceEngine())))

it('the link to a worker on a node, over a real connection', { timeout: 120_000 }, () => property(30, remoteLink))

it('the link to a worker on Ray, whatever the actor takes when', { timeout: 120_000 }, () => property(60, rayLink))

/** The driver's end of a mux over a real connection; a worker that answers is at the other. */
async function remoteLink(moments: () => number): Promise<WorkerLink> {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  await once(server, 'listening')
  const near = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`)
  const [[far]] = (await Promise.all([once(server, 'connection'), once(near, 'open')])) as [[WebSocket], unknown]
  const ends = [muxOver(near, parseHostMessage), muxOver(far, parseDriverMessage)] as const
  endings.push(() => {
    for (const { session } of ends) session.end('done')
    server.close()
  })
  const [driver, host] = ends
  const worker = 7
  host.mux.open(worker, {
    frame: (frame) => {
      host.mux.send(worker, answerTo(Buffer.from(frame)).answer)
      // Some are only taken later.
      const later = moments()
      if (later > 0) setTimeout(() => host.mux.taken(worker), later)
      return later === 0
    },
    drained: () => {},
  })
  return new RemoteLink(driver.mux, worker, 'remote-0', { host: 'here' }, { onKill: () => {}, connectedForMs: () => 0 })
}

function muxOver(socket: WebSocket, parse: typeof parseHostMessage | typeof parseDriverMessage) {
  const session: Session = new Session(
    's',
    { lostMs: 1e9, lends: false },
    {
      message: (kind, bytes) => {
        const message = kind === KIND.data ? undefined : parse(bytes)
        if (message?.type === 'credit') mux.onCredit(message.worker, message.bytes)
        else mux.onData(bytes)
      },
      drained: () => mux.pump(),
      isGone: () => false,
      ended: () => {},
    },
  )
  const mux = new Mux(session)
  const peer = new Peer(socket, 'here', () => {})
  peer.secure({ seal: (message) => Buffer.from(message), open: (sealed) => Buffer.from(sealed) })
  session.attach(peer, 0)
  return { session, mux }
}

/** In place of bridge and actor: takes what is sent in pieces of its own, as pushes of an actor are. */
async function rayLink(moments: () => number): Promise<WorkerLink> {
  const outgoing: Buffer[] = []
  let pushes = 0
  const read = frameReader(
    (frame) => {
      const { answer } = answerTo(frame)
      const header = Buffer.alloc(4)
      header.writeUInt32LE(answer.byteLength)
      const whole = Buffer.concat([header, answer])
      const cut = Math.floor((whole.byteLength * moments()) / 4)
      link.receive(whole.subarray(0, cut))
      link.receive(whole.subarray(cut))
    },
    () => {},
  )
  const push = async () => {
    pushes++
    while (outgoing.length > 0) {
      const body = Buffer.concat(outgoing.splice(0, 1 + 2 * moments()))
      read(body)
      await new Promise((resolve) => setTimeout(resolve, moments()))
      link.taken(body.byteLength)
    }
    pushes--
  }
  const bridge = {
    data: (_worker: number, _generation: number, bytes: Uint8Array) => {
      outgoing.push(Buffer.from(bytes))
      if (pushes < 2) setTimeout(() => void push(), 0)
    },
    control: () => {},
  }
  const link = new RayLink(bridge, 1, 'ray-0', 1, { host: 'here' }, () => {})
  return link
}
