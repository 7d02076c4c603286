import { EventEmitter } from 'node:events'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { dial } from '../../src/network/dial.ts'
import { openGate } from '../../src/network/gate.ts'
import { newSessionId } from '../../src/network/handshake.ts'
import {
  BEAT_MS,
  CHUNK_BYTES,
  MAX_FRAME_BYTES,
  SILENT_MS,
  STREAM_BYTES,
  WINDOW_BYTES,
} from '../../src/network/limits.ts'
import { Mux } from '../../src/network/mux.ts'
import { Peer } from '../../src/network/peer.ts'
import { KIND, Session } from '../../src/network/session.ts'
import { share } from '../support/storm.ts'

/** So many that they fill the window together. */
const STREAMS = [1, 2, 3, 4, 5, 6]
const FOR_EVER_MS = 1e12
const TURNS = 20_000

type Random = () => number

function randomFrom(seed: number): Random {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** One end of a connection in memory, as far as a Peer uses it. What is under way when it is cut may arrive, or not. */
class Wire extends EventEmitter {
  readonly underWay: { bytes: Buffer; isBinary: boolean }[] = []
  other!: Wire
  closed: { code: number; reason: string } | undefined
  #open = true
  #bytes = 0

  static pair(): [Wire, Wire] {
    const [left, right] = [new Wire(), new Wire()]
    left.other = right
    right.other = left
    return [left, right]
  }

  get bufferedAmount(): number {
    return this.#bytes
  }

  send(message: Buffer | string): void {
    const isBinary = typeof message !== 'string'
    if (!this.#open) return
    const bytes = Buffer.from(message as Buffer)
    this.underWay.push({ bytes, isBinary })
    this.#bytes += bytes.byteLength
  }

  close(code: number, reason = ''): void {
    this.closed ??= { code, reason }
    this.terminate()
  }

  terminate(): void {
    if (!this.#open) return
    this.#open = false
    setImmediate(() => this.emit('close', 1006, Buffer.alloc(0)))
  }

  /** Hands over so many messages. */
  deliver(count: number): void {
    for (const { bytes, isBinary } of this.underWay.splice(0, count)) {
      this.#bytes -= bytes.byteLength
      if (this.other.#open) this.other.emit('message', bytes, isBinary)
    }
  }
}

/** What is said here is not sealed: these tests are about what is said. */
const PLAIN = { seal: (message: Uint8Array) => Buffer.from(message), open: (sealed: Uint8Array) => Buffer.from(sealed) }

function peerOn(wire: Wire): Peer {
  const peer = new Peer(wire as never, 'elsewhere', () => {})
  peer.secure(PLAIN)
  return peer
}

/** One end of the conversation, and what it has heard. */
class End {
  readonly session: Session
  readonly mux: Mux
  readonly controls: number[] = []
  readonly frames = new Map<number, Uint8Array[]>(STREAMS.map((stream) => [stream, []]))
  /** Streams whose sender was told to wait. */
  readonly waiting = new Set<number>()
  readonly taking: number[] = []
  ended: string | undefined
  abandoned: string | undefined
  otherIsGone = false
  mostKept = 0
  readonly #sizes: number[] = []
  #kept = 0
  #forgotten = 0
  /** What it has still to send, the next one last. */
  readonly #left: Map<number, Uint8Array[]>
  readonly #random: Random

  constructor(random: Random, toSend: Map<number, Uint8Array[]>, lostMs = FOR_EVER_MS, lends = false) {
    this.#random = random
    this.#left = new Map([...toSend].map(([stream, frames]) => [stream, [...frames].reverse()]))
    this.session = new Session(
      's',
      { lostMs, lends },
      {
        message: (kind, bytes) => this.#onMessage(kind, bytes),
        drained: () => this.mux.pump(),
        isGone: () => this.otherIsGone,
        abandoned: (reason) => {
          this.abandoned = reason
        },
        ended: (reason) => {
          expect(this.ended, 'it ends once').toBeUndefined()
          this.ended = reason
        },
      },
    )
    this.#countKept()
    this.mux = new Mux(this.session)
    for (const stream of STREAMS)
      this.mux.open(stream, {
        frame: (frame) => this.#onFrame(stream, frame),
        drained: () => {
          expect(this.waiting.delete(stream), 'only who was told to wait is told to go on').toBe(true)
          this.sendSome(stream)
        },
      })
  }

  get done(): boolean {
    return this.waiting.size === 0 && [...this.#left.values()].every((left) => left.length === 0)
  }

  sendSome(stream: number): void {
    const left = this.#left.get(stream)!
    while (left.length > 0 && !this.waiting.has(stream)) {
      // Some senders have a few more on their lips when they are told to wait.
      for (let burst = this.#random() < 0.1 ? 3 : 1; burst > 0 && left.length > 0; burst--)
        if (!this.mux.send(stream, left.pop()!)) this.waiting.add(stream)
    }
  }

  /** How many of its messages the other end has, as far as it was told. */
  forget(theirs: number): void {
    for (const size of this.#sizes.splice(0, theirs - this.#forgotten)) this.#kept -= size
    this.#forgotten = theirs
  }

  #countKept(): void {
    const send = this.session.send.bind(this.session)
    this.session.send = (message) => {
      const size = message[0] === KIND.data ? message.byteLength : 0
      this.#sizes.push(size)
      this.#kept += size
      this.mostKept = Math.max(this.mostKept, this.#kept)
      send(message)
    }
  }

  #onMessage(kind: number, bytes: Buffer): void {
    if (kind === KIND.data) {
      const wrong = this.mux.onData(bytes)
      if (wrong !== undefined) this.session.refuse(wrong)
      return
    }
    const message = JSON.parse(bytes.toString())
    if (message.type === 'credit') this.mux.onCredit(message.worker, message.bytes)
    else this.controls.push(message.number)
  }

  #onFrame(stream: number, frame: Uint8Array): boolean {
    this.frames.get(stream)!.push(frame)
    if (this.#random() < 0.7) return true
    this.taking.push(stream)
    return false
  }
}

interface Story {
  readonly seed: number
  readonly controls: number
  readonly cuts: number
  readonly sizes: readonly (readonly number[])[]
}

const frameSize = fc.oneof(
  { weight: 6, arbitrary: fc.nat(2000) },
  { weight: 1, arbitrary: fc.constantFrom(0, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, STREAM_BYTES) },
  { weight: 2, arbitrary: fc.nat(3 * 1024 * 1024) },
)
const story: fc.Arbitrary<Story> = fc.record({
  seed: fc.integer(),
  controls: fc.nat(200),
  cuts: fc.nat(12),
  // Of each stream, in both directions.
  sizes: fc.array(fc.array(frameSize, { maxLength: 15 }), {
    minLength: 2 * STREAMS.length,
    maxLength: 2 * STREAMS.length,
  }),
})

function framesOf(sizes: Story['sizes'], random: Random): Map<number, Uint8Array[]> {
  return new Map(
    STREAMS.map((stream, index) => [
      stream,
      sizes[index]!.map((size) => Buffer.alloc(size, Math.floor(random() * 256))),
    ]),
  )
}

const times = <T>(count: number, thing: T): T[] => Array.from({ length: count }, () => thing)
const turn = () => new Promise<void>((resolve) => setImmediate(resolve))

/** Plays a conversation whose connection is cut again and again, and answers both ends with what they should have heard. */
async function play({ seed, controls, cuts, sizes }: Story) {
  const random = randomFrom(seed)
  const upon = (chance: number) => random() < chance
  const fromCaller = framesOf(sizes.slice(0, STREAMS.length), random)
  const fromCalled = framesOf(sizes.slice(STREAMS.length), random)
  const caller = new End(random, fromCaller)
  const called = new End(random, fromCalled)
  const ends = [caller, called]
  let wires: Wire[] = []
  let cutsLeft = cuts
  const learning: { wire: Wire; turns: number }[] = []
  const said = [0, 0]
  /** The second half of a new connection: the caller has not read its welcome yet. */
  let welcome: (() => void) | undefined

  const connect = () => {
    const [left, right] = Wire.pair()
    const [peer, theirPeer] = [peerOn(left), peerOn(right)]
    left.prependListener('message', (bytes: Buffer) => noteAck(caller, bytes))
    right.prependListener('message', (bytes: Buffer) => noteAck(called, bytes))
    const { received } = caller.session
    const theirs = called.session.letGo()
    // What still comes over the old connection was not counted in the new one.
    for (const wire of wires) wire.deliver(100)
    called.forget(received)
    called.session.attach(theirPeer, received)
    wires = [left, right]
    welcome = () => {
      caller.forget(theirs)
      caller.session.attach(peer, theirs)
    }
  }
  const speak = () => {
    ends.forEach((end, index) => {
      if (said[index]! < controls && upon(0.3)) end.mux.control({ type: 'x', number: said[index]!++ })
      if (upon(0.2)) end.sendSome(STREAMS[Math.floor(random() * STREAMS.length)]!)
      if (upon(0.05)) end.session.beat(1)
      if (end.taking.length > 0 && upon(0.3)) end.mux.taken(end.taking.shift()!)
    })
  }
  const wanted = ({ frames }: End, from: Map<number, Uint8Array[]>) =>
    STREAMS.every((stream) => frames.get(stream)!.length >= from.get(stream)!.length)
  const isOver = () =>
    ends.every((end) => end.done && end.controls.length >= controls) &&
    wanted(caller, fromCalled) &&
    wanted(called, fromCaller)

  for (let turns = 0; !isOver(); turns++) {
    expect(turns, 'it comes to an end').toBeLessThan(TURNS)
    speak()
    for (const wire of wires) wire.deliver(Math.floor(random() * 40))
    if (welcome && upon(0.5)) {
      welcome()
      welcome = undefined
    }
    if (cutsLeft > 0 && wires.length > 0 && upon(0.15)) {
      cutsLeft--
      // One end may learn of it later than the other: also after the other has called again.
      for (const wire of wires) learning.push({ wire, turns: turns + Math.floor(random() * 30) })
    }
    for (const { wire } of learning.filter((one) => one.turns <= turns)) wire.terminate()
    if (welcome === undefined && !caller.session.attached) connect()
    await turn()
  }
  return { caller, called, fromCaller, fromCalled }
}

function noteAck(end: End, bytes: Buffer): void {
  if (bytes[0] === KIND.ack) end.forget(bytes.readDoubleLE(1))
}

const counted = (count: number) => Array.from({ length: count }, (_, index) => index)

describe('a connection that is cut again and again', () => {
  it('loses nothing, repeats nothing and keeps the order, however slow its readers are', async () => {
    await fc.assert(
      fc.asyncProperty(story, async (told) => {
        const { caller, called, fromCaller, fromCalled } = await play(told)
        for (const [end, from] of [
          [caller, fromCalled],
          [called, fromCaller],
        ] as const) {
          expect(end.ended).toBeUndefined()
          expect(end.controls).toEqual(counted(told.controls))
          for (const stream of STREAMS) {
            const [heard, meant] = [end.frames.get(stream)!, from.get(stream)!]
            expect(heard.map(({ byteLength }) => byteLength)).toEqual(meant.map(({ byteLength }) => byteLength))
            expect(heard.every((frame, index) => Buffer.from(frame).equals(meant[index]!))).toBe(true)
          }
          // The window, the piece that fills it, and its header.
          expect(end.mostKept).toBeLessThanOrEqual(WINDOW_BYTES + CHUNK_BYTES + 6)
        }
      }),
      { numRuns: share(30, 300), timeout: 20_000, interruptAfterTimeLimit: 40_000 },
    )
  }, 90_000)

  it('goes on over a real socket, with thousands of small messages under way', async () => {
    const random = randomFrom(1)
    const [caller, called] = [new End(random, new Map()), new End(random, new Map())]
    const gate = await openGate({
      ...{ host: '127.0.0.1', port: 0, token: 'not much of a secret', tls: undefined, maxConnections: 9 },
      admit: () => called.session.letGo(),
      accept: (peer, { received }) => called.session.attach(peer, received),
      refused: (line) => expect.unreachable(line),
    })
    const id = newSessionId()
    const call = async (fresh: boolean) => {
      const { received } = caller.session
      const { peer, received: theirs } = await dial({
        address: { host: '127.0.0.1', port: gate.port, secure: false },
        token: 'not much of a secret',
        tls: undefined,
        hello: { role: 'driver', session: id, fresh, received },
      })
      caller.session.attach(peer, theirs)
      return peer
    }
    const COUNT = 30_000
    let peer = await call(true)
    let cuts = 0
    for (let number = 0; number < COUNT; number++) {
      for (const end of [caller, called]) end.mux.control({ type: 'x', number })
      if (number % 6000 !== 5999) continue
      // Nothing of it gets through, or some, or all.
      for (let turns = 0; turns < cuts % 3; turns++) await turn()
      cuts++
      peer.socket.terminate()
      await caller.session.untilDetached()
      peer = await call(false)
    }
    await expect.poll(() => [caller.controls.length, called.controls.length]).toEqual([COUNT, COUNT])
    for (const end of [caller, called]) {
      expect(end.controls).toEqual(counted(COUNT))
      end.session.end('done')
    }
    gate.close()
  })
})

it('small frames are never held up for ever, however many there are', async () => {
  const count = 2 + Math.ceil(STREAM_BYTES / 6)
  const random = () => 0.5
  const [left, right] = Wire.pair()
  const [from, to] = [new End(random, new Map([[1, times(count, Buffer.alloc(0))]])), new End(random, new Map())]
  from.session.attach(peerOn(left), 0)
  to.session.attach(peerOn(right), 0)
  from.sendSome(1)
  while (to.frames.get(1)!.length < count) {
    expect(left.underWay.length + right.underWay.length).toBeGreaterThan(0)
    left.deliver(1000)
    right.deliver(1000)
  }
  expect(from.done).toBe(true)
})

/** A session with a connection, and what it does with it. */
function connected(lostMs = 20_000, lends = false) {
  const end = new End(() => 0, new Map(), lostMs, lends)
  const [ours, theirs] = Wire.pair()
  end.session.attach(peerOn(ours), 0)
  return { ...{ end, ours, theirs }, session: end.session }
}

describe('an end that is not heard', () => {
  it('is waited for as long as was agreed on, and its connection given up before', async () => {
    const { session, end, ours } = connected()
    session.beat()
    for (let passed = 0; passed < SILENT_MS; passed += BEAT_MS) {
      expect(session.attached).toBe(true)
      session.beat()
    }
    await turn()
    expect(session.attached).toBe(false)
    expect(ours.closed).toBeUndefined()
    for (let passed = SILENT_MS; passed < 20_000; passed += BEAT_MS) {
      expect(end.ended).toBeUndefined()
      session.beat()
    }
    expect(end.ended).toBe('nothing was heard from it for 20 s')
  })

  const beats = (session: Session, ms: number) => {
    for (let passed = 0; passed < ms; passed += BEAT_MS) session.beat()
  }

  it('is waited for just as long if the connection was closed: who closed it is not known', async () => {
    const { session, end, ours } = connected()
    session.beat()
    ours.terminate()
    await turn()
    beats(session, 19_000)
    expect(end.ended).toBeUndefined()
    session.beat()
    expect(end.ended).toBe('it has ended, or its connection was cut')
  })

  it('is given up at once if its processes are known to be gone, but not while it is connected', async () => {
    const { session, end, ours } = connected()
    end.otherIsGone = true
    session.beat()
    expect(end.ended).toBeUndefined()
    ours.terminate()
    await turn()
    session.beat()
    expect(end.ended).toBe('its process has ended')
  })

  it('may work on if nothing listens there: a driver waits for its lease, a host does not wait for a driver', async () => {
    const [driver, host] = [connected(20_000, true), connected(15_000, false)]
    for (const { session, ours } of [driver, host]) {
      ours.terminate()
      await turn()
      session.onRefused()
    }
    expect(host.end.ended).toBe('its process has ended')
    beats(driver.session, 19_000)
    expect(driver.end.ended).toBeUndefined()
    driver.session.beat()
    expect(driver.end.ended).toBeDefined()
  })

  it('is connected again when a message of it was forged, which is not its doing', () => {
    const { session, end, ours, theirs } = connected(20_000, true)
    theirs.send('forged')
    theirs.deliver(1)
    expect([session.attached, end.abandoned, end.ended]).toEqual([false, undefined, undefined])
    expect(ours.closed).toEqual({ code: 1008, reason: 'a message that was forged, or altered on its way' })
    const [again] = Wire.pair()
    session.attach(peerOn(again), 0)
    expect(session.attached).toBe(true)
  })

  it('goes on when a hello of it comes late, after it has made another connection', () => {
    const { session, end, theirs } = connected(15_000, false)
    end.mux.control({ type: 'notice' })
    theirs.send(ack(1))
    theirs.deliver(1)
    const [late, again] = [Wire.pair()[0], Wire.pair()[0]]
    session.attach(peerOn(late), 0)
    expect([session.attached, end.ended]).toEqual([false, undefined])
    session.attach(peerOn(again), 1)
    expect([session.attached, end.ended]).toEqual([true, undefined])
  })

  it('is heard once, if what it said still came over a connection that was counted and let go', () => {
    const { session, end, theirs } = connected(15_000, false)
    const say = (wire: Wire, number: number) => {
      wire.send(Buffer.concat([Buffer.of(KIND.control), Buffer.from(JSON.stringify({ type: 'x', number }))]))
      wire.deliver(1)
    }
    say(theirs, 0)
    expect(session.letGo()).toBe(1)
    say(theirs, 1)
    const [again, theirsAgain] = Wire.pair()
    session.attach(peerOn(again), 0)
    // It was told that one had come.
    say(theirsAgain, 1)
    expect(end.controls).toEqual([0, 1])
  })

  it('hears nothing more when messages of it are forged again and again; its tasks run elsewhere when its lease must have ended', async () => {
    const { session, end, ...first } = connected(20_000, true)
    let { ours, theirs } = first
    for (let n = 0; n < 3; n++) {
      theirs.send('forged')
      theirs.deliver(1)
      ;[ours, theirs] = Wire.pair()
      session.attach(peerOn(ours), 0)
    }
    theirs.send('forged')
    theirs.deliver(1)
    expect(session.attached).toBe(false)
    expect(end.abandoned).toBe('it sent a message that was forged, or altered on its way')
    expect(ours.closed).toEqual({ code: 1008, reason: 'a message that was forged, or altered on its way' })
    // It is told, so that it need not wait for the end of its lease.
    expect(ours.underWay.map(({ bytes }) => bytes[0])).toEqual([KIND.broken])
    const [again] = Wire.pair()
    session.attach(peerOn(again), 0)
    end.mux.control({ type: 'notice' })
    session.beat()
    expect([session.attached, again.underWay]).toEqual([false, []])
    beats(session, 18_000)
    expect(end.ended).toBeUndefined()
    session.beat()
    expect(end.ended).toBe('it sent a message that was forged, or altered on its way')
  })

  it('ends its work at once when its driver says that it broke the protocol', () => {
    const { end, theirs } = connected(15_000, false)
    theirs.send(Buffer.concat([Buffer.of(KIND.broken), Buffer.from('more workers than requested')]))
    theirs.deliver(1)
    expect(end.ended).toBe('it ended the session: more workers than requested')
  })

  it('is given all its time again when it is back', async () => {
    const { session, end, ours } = connected()
    ours.terminate()
    await turn()
    session.beat()
    session.beat()
    const [again] = Wire.pair()
    session.attach(peerOn(again), 0)
    for (let passed = 0; passed <= 19_000; passed += BEAT_MS) session.beat()
    expect(end.ended).toBeUndefined()
  })

  it('is given up if it takes nothing of what it is told, before that fills the memory', () => {
    const { end } = connected()
    let said = 0
    while (end.ended === undefined && said < 1e6)
      end.mux.control({ type: 'notice', number: said++, line: 'x'.repeat(1000) })
    expect(end.ended).toBe('it stopped reading; the send buffer exceeded 64 MB')
    expect(said * 1000).toBeLessThan(20 * WINDOW_BYTES)
  })
})

const ack = (count: number) => {
  const bytes = Buffer.alloc(9, KIND.ack)
  bytes.writeDoubleLE(count, 1)
  return bytes
}
const piece = (stream: number, size: number, last: boolean) => {
  const bytes = Buffer.alloc(6 + size)
  bytes[0] = KIND.data
  bytes.writeUInt32LE(stream, 1)
  bytes[5] = last ? 1 : 0
  return bytes
}

const WRONG: [what: string, messages: (Buffer | string)[], reason: RegExp][] = [
  ['nothing', [Buffer.alloc(0)], /not part of the protocol/],
  ['another kind', [Buffer.of(4, 1, 2)], /unknown kind 4/],
  ['a short acknowledgement', [Buffer.of(2, 0)], /malformed acknowledgement/],
  ['a long acknowledgement', [Buffer.alloc(10, 2)], /malformed acknowledgement/],
  ...[NaN, -1, 0.5, 1, 2 ** 60, Infinity, -Infinity].map((count): [string, Buffer[], RegExp] => [
    `an acknowledgement of ${count}`,
    [ack(count)],
    /never sent/,
  ]),
  ['a piece that is too short to have a header', [Buffer.of(1, 1, 0, 0)], /too short/],
  ['an empty piece that is not the last', [piece(1, 0, false)], /wrong size/],
  ['a small piece that is not the last', [piece(1, 5, false)], /wrong size/],
  ['a piece that is too large', [piece(1, CHUNK_BYTES + 1, true)], /wrong size/],
  ['more than there was credit for', times(9, piece(2, CHUNK_BYTES, true)), /credit/],
  ['empty frames without end', times(STREAM_BYTES, piece(2, 0, true)), /credit/],
  ['a frame without end', times(1 + MAX_FRAME_BYTES / CHUNK_BYTES, piece(1, CHUNK_BYTES, false)), /a frame of more/],
]

describe('an end that says what nobody says', () => {
  it.each(WRONG)('%s: its session ends, with the reason', (_what, messages, reason) => {
    const { end, ours, theirs } = connected()
    // A reader that takes nothing: what there is credit for comes without.
    end.mux.open(2, { frame: () => false, drained: () => {} })
    for (const message of messages) theirs.send(message)
    theirs.deliver(messages.length)
    expect(end.ended).toMatch(reason)
    expect(ours.closed?.code).toBe(1008)
    expect(ours.closed?.reason).toMatch(reason)
    // And no more is heard of it.
    theirs.send(piece(1, 3, true))
    theirs.deliver(1)
    expect(end.frames.get(1)).toEqual([])
  })

  it('whatever it is: nothing is thrown, and it is heard no more after it', () => {
    const noise = fc
      .tuple(fc.constantFrom(0, 1, 2, 4, 5), fc.uint8Array({ maxLength: 40 }))
      .map(([kind, bytes]) => Buffer.from([kind, ...bytes]))
    fc.assert(
      fc.property(fc.array(noise, { minLength: 1, maxLength: 5 }), (messages) => {
        const { end, ours, theirs } = connected()
        for (const message of messages.filter(([kind]) => kind !== KIND.control)) theirs.send(message)
        theirs.deliver(messages.length)
        expect(end.ended === undefined).toBe(ours.closed === undefined)
      }),
      { numRuns: 3000 },
    )
  })

  it('a wrong count of what it has, when it comes back', () => {
    for (const count of [1, -1, 2 ** 53]) {
      const end = new End(() => 0, new Map())
      const [ours] = Wire.pair()
      end.session.attach(peerOn(ours), count)
      expect(end.ended).toMatch(/count/)
      expect(ours.closed?.code).toBe(1008)
    }
  })
})
