import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Channel, type MessageCheck, type Wire } from '../../src/protocol/channel.ts'
import {
  checkDriverMessage,
  checkWorkerMessage,
  isDriverMessage,
  isWorkerMessage,
} from '../../src/protocol/check-messages.ts'
import { CODECS, decode, encode, PLAIN, scanBatch } from '../../src/protocol/codec.ts'
import { type DriverMessage, PROTOCOL_VERSION, type WorkerMessage } from '../../src/protocol/messages.ts'
import { packBytes } from '../../src/protocol/pack.ts'
import { creditFrame, fragmentFrame, KIND } from '../../src/protocol/raw-frames.ts'
import { checkStep } from '../../src/trajectory/packed-step.ts'

const ref = { name: 'a', module: 'file:///a.js', fingerprint: 'f00d' }
const error = { code: 'UNCAUGHT_IN_TASK', name: 'Error', message: 'm', stack: undefined } as const

/** One of each, with everything that may be there. */
const DRIVER_MESSAGES: DriverMessage[] = [
  {
    type: 'hello',
    protocol: PROTOCOL_VERSION,
    codec: CODECS[0]!,
    settings: { concurrency: 4, recycleAfterTasks: 9, recycleAboveMb: undefined, withheldEnv: ['OPENAI_API_KEY'] },
  },
  {
    type: 'agent',
    key: 0,
    ref,
    params: packBytes(new Map()),
    entry: 'file:///b.js',
    bundle: { sha256: 'ab'.repeat(32), module: 'a.js', entry: undefined },
  },
  {
    type: 'profile',
    key: 1,
    profile: { agent: 0, runId: 'r', seed: -7, timeoutMs: 0.5, announce: false, recorded: true },
  },
  { type: 'forget', profiles: [1, 2] },
  {
    type: 'run',
    tasks: [
      [1, 1, 5, { input: 'plain' }],
      [2, 1, 'named', packBytes(new Date(0)), 2, { info: 'x', previous: undefined }],
    ],
    careful: true,
  },
  { type: 'recall' },
  { type: 'go', lease: 3 },
  { type: 'cancel', lease: 3, reason: 'deadline' },
  { type: 'answer', request: 1, ok: true, last: true, value: [{ id: 'x' }] },
  { type: 'yours', request: 1 },
  { type: 'stored', bytes: 1000 },
]

const WORKER_MESSAGES: WorkerMessage[] = [
  { type: 'ready', protocol: PROTOCOL_VERSION, codecs: CODECS, node: process.version, pid: 7 },
  { type: 'loaded', agent: 0 },
  { type: 'load-failed', agent: 0, code: 'AGENT_NOT_FOUND', message: 'm', stack: 's' },
  {
    type: 'done',
    records: [
      [
        1,
        [
          [5, '{"a":1}'],
          [
            6,
            packBytes({ at: new Date(0) }),
            1,
            -0.5,
            { inputTokens: 1 },
            3,
            [[['a', 'b'], 0, 2]],
            [[['c'], new ArrayBuffer(2)]],
          ],
        ],
        ['a line'],
      ],
    ],
    outcomes: [
      [1, 0, { answer: 1 }, 12],
      [2, 1, packBytes(new Set()), 0],
    ],
  },
  { type: 'started', leases: [1] },
  { type: 'may-start', lease: 1 },
  { type: 'hungry' },
  { type: 'returned', unstarted: [] },
  { type: 'retire', reason: 'old', unstarted: [4, 5] },
  { type: 'exiting', lease: 1, error: { ...error, thrown: 1n } },
  { type: 'cancel-seen', lease: 1 },
  { type: 'stray', error },
  { type: 'ask', request: 1, lease: 1, service: 's', kind: 'one', slot: 'keep', clock: 'runs', body: { a: 1 } },
  { type: 'unask', request: 1, lease: 1 },
  { type: 'more', request: 1, lease: 1, parts: 8 },
  { type: 'hand-in', request: 1, lease: 1, value: [1] },
]

/** Fields that may be whatever they like. */
const OPAQUE = new Set(['type', 'params', 'value', 'body'])

const DIRECTIONS: [
  name: string,
  messages: { type: string }[],
  check: MessageCheck,
  isRight: (m: unknown) => boolean,
][] = [
  ['a worker', WORKER_MESSAGES, checkWorkerMessage, isWorkerMessage],
  ['a driver', DRIVER_MESSAGES, checkDriverMessage, isDriverMessage],
]

/** A channel that listens to whatever it is fed. */
function listener(check: MessageCheck, codec: string = CODECS[0]!) {
  const delivered: unknown[] = []
  const codes: string[] = []
  const reasons: string[] = []
  let feed: (frame: Uint8Array) => void = () => {}
  const wire: Wire = { send: () => true, onDrain: () => {}, onFrame: (on) => void (feed = on) }
  const channel = new Channel(
    wire,
    check,
    (message) => {
      expect(codes, 'nothing is delivered after a break').toEqual([])
      delivered.push(message)
    },
    ({ code, message }) => {
      codes.push(code)
      reasons.push(message)
    },
    check === checkWorkerMessage ? scanBatch : undefined,
  )
  channel.speak(codec)
  return { delivered, codes, reasons, feed: (frame: Uint8Array) => feed(frame) }
}

/** Feeds frames and then a good one, and looks at what came of it. */
function listen(
  check: MessageCheck,
  isRight: (message: unknown) => boolean,
  frames: readonly Uint8Array[],
  codec: string = CODECS[0]!,
) {
  const { delivered, codes, reasons, feed } = listener(check, codec)
  for (const frame of frames) feed(frame)
  const before = delivered.length
  const good = check === checkWorkerMessage ? { type: 'hungry' } : { type: 'recall' }
  feed(encode([good], codec))
  expect(delivered.every(isRight)).toBe(true)
  expect(codes).toEqual(delivered.length > before ? [] : ['PROTOCOL_ERROR'])
  return { codes, reasons, delivered: delivered.slice(0, before) }
}

const codec = fc.constantFrom(...CODECS)

/** A frame with something done to it. */
const spoiled = (frame: Uint8Array, how: Spoiling): Uint8Array => {
  switch (how.kind) {
    case 'flip': {
      const copy = Uint8Array.from(frame)
      for (const [at, bit] of how.flips) copy[at % copy.length]! ^= 1 << bit
      return copy
    }
    case 'cut':
      return frame.subarray(0, how.at % frame.length)
    case 'extend':
      return Buffer.concat([frame, how.more])
    case 'splice':
      return Buffer.concat([
        frame.subarray(0, how.at % frame.length),
        how.more,
        frame.subarray((how.at + how.skip) % frame.length),
      ])
  }
}
type Spoiling =
  | { kind: 'flip'; flips: [number, number][] }
  | { kind: 'cut'; at: number }
  | { kind: 'extend'; more: Uint8Array }
  | { kind: 'splice'; at: number; skip: number; more: Uint8Array }

const spoiling: fc.Arbitrary<Spoiling> = fc.oneof(
  fc.record({
    kind: fc.constant('flip' as const),
    flips: fc.array(fc.tuple(fc.nat(), fc.nat(7)), { minLength: 1, maxLength: 4 }),
  }),
  fc.record({ kind: fc.constant('cut' as const), at: fc.nat() }),
  fc.record({ kind: fc.constant('extend' as const), more: fc.uint8Array({ minLength: 1, maxLength: 20 }) }),
  fc.record({
    kind: fc.constant('splice' as const),
    at: fc.nat(),
    skip: fc.nat(20),
    more: fc.uint8Array({ maxLength: 20 }),
  }),
)

/** Puts a value in place of one that is somewhere inside; `steps` lead there. */
function replaced(message: unknown, steps: readonly number[], value: unknown): unknown {
  if (steps.length === 0 || typeof message !== 'object' || message === null || message instanceof Uint8Array)
    return value
  const keys = Object.keys(message)
  if (keys.length === 0) return value
  const key = keys[steps[0]! % keys.length]!
  const copy: Record<string, unknown> = Array.isArray(message) ? ([...message] as never) : { ...message }
  copy[key] = replaced(copy[key], steps.slice(1), value)
  return copy
}

describe.each(DIRECTIONS)('what %s might send', (_, messages, check, isRight) => {
  it('is delivered if it is right', () => {
    for (const name of CODECS) {
      const { delivered } = listen(check, isRight, [encode(messages, name)], name)
      expect(delivered).toEqual(messages)
    }
  })

  it('breaks the channel if it is noise', () => {
    const noise = fc
      .tuple(fc.constantFrom(...Object.values(KIND), 7), fc.uint8Array({ maxLength: 200 }))
      .map(([kind, bytes]) => Buffer.concat([Uint8Array.of(kind), bytes]))
    fc.assert(
      fc.property(
        fc.array(fc.oneof(noise, fc.uint8Array({ maxLength: 40 })), { minLength: 1, maxLength: 3 }),
        (frames) => {
          listen(check, isRight, frames)
        },
      ),
      { numRuns: 2000 },
    )
  })

  it('breaks the channel, or is right, if a good frame was spoiled', () => {
    fc.assert(
      fc.property(fc.nat(messages.length - 1), codec, spoiling, (index, name, how) => {
        const frame = encode([messages[index], messages[(index + 1) % messages.length]], name)
        listen(check, isRight, [spoiled(frame, how)], name)
      }),
      { numRuns: 2000 },
    )
  })

  it('breaks the channel, or is right, if something in a message is something else', () => {
    const other = fc.oneof(
      fc.anything({ withBigInt: true, withMap: true, withSparseArray: true }),
      fc.constantFrom<unknown>(-1, 0.5, NaN, 2 ** 60, null, undefined, '', [], {}, [[]], [-1], [[1, 2, 3, 4]]),
    )
    fc.assert(
      fc.property(
        fc.nat(messages.length - 1),
        fc.array(fc.nat(), { minLength: 1, maxLength: 4 }),
        other,
        codec,
        (index, steps, value, name) => {
          const message = replaced(messages[index], steps, value)
          const frame = encode([message], name)
          const { delivered } = listen(check, isRight, [frame], name)
          expect(delivered.length).toBe(isRight(decode(frame)[0]) ? 1 : 0)
        },
      ),
      { numRuns: 2000 },
    )
  })

  it('breaks the channel, by the name of the field, if one is wrong', () => {
    for (const message of messages)
      for (const field of Object.keys(message).filter((key) => !OPAQUE.has(key))) {
        // No field of a message may be this.
        const { reasons, delivered } = listen(check, isRight, [encode([{ ...message, [field]: -1.5 }], CODECS[0]!)])
        expect(delivered).toEqual([])
        expect(reasons).toEqual([`the other end sent a malformed '${message.type}': its '${field}' is not right`])
      }
  })

  it('of a batch, is delivered up to what is wrong', () => {
    const batch = [messages[0], messages[1], { type: 'no-such' }, messages[2]]
    const { delivered, reasons } = listen(check, isRight, [encode(batch, CODECS[0]!), encode(messages, CODECS[0]!)])
    expect(delivered).toEqual(messages.slice(0, 2))
    expect(reasons).toEqual(["the other end sent a message of unknown type 'no-such'"])
  })
})

const WRONG_PARTS: [what: string, check: MessageCheck, message: unknown][] = [
  ['a status', checkWorkerMessage, { type: 'done', records: [], outcomes: [[1, 4, 'x', 1]] }],
  ['a duration', checkWorkerMessage, { type: 'done', records: [], outcomes: [[1, 0, 'x', -1]] }],
  ['an outcome that is short', checkWorkerMessage, { type: 'done', records: [], outcomes: [[1, 0, 'x']] }],
  ['a step', checkWorkerMessage, { type: 'done', records: [[1, [{}], []]], outcomes: [] }],
  ['a line', checkWorkerMessage, { type: 'done', records: [[1, [], [1]]], outcomes: [] }],
  ['an error’s code', checkWorkerMessage, { type: 'stray', error: { ...error, code: 'toString' } }],
  ['a load failure', checkWorkerMessage, { type: 'load-failed', agent: 0, code: 'ENOENT', message: '' }],
  [
    'a kind of request',
    checkWorkerMessage,
    { type: 'ask', request: 1, lease: 1, service: 's', kind: 'two', slot: 'keep', clock: 'runs' },
  ],
  ['many codecs', checkWorkerMessage, { ...WORKER_MESSAGES[0], codecs: Array.from({ length: 99 }, () => 'x') }],
  ['a task that is long', checkDriverMessage, { type: 'run', careful: false, tasks: [[1, 1, 1, 1, 1, {}, 1]] }],
  ['a task’s extras', checkDriverMessage, { type: 'run', careful: false, tasks: [[1, 1, 1, 1, 1, 1]] }],
  ['a task’s id', checkDriverMessage, { type: 'run', careful: false, tasks: [[1, 1, {}, 1]] }],
  ['a hash', checkDriverMessage, { ...DRIVER_MESSAGES[1], bundle: { sha256: '../..', module: 'a' } }],
  ['concurrency', checkDriverMessage, { ...DRIVER_MESSAGES[0], settings: { concurrency: 0, withheldEnv: [] } }],
  ['a type that objects have', checkDriverMessage, { type: 'constructor' }],
]

it.each([
  [{ costUsd: -5 }],
  [{ costUsd: 1e300 }],
  [{ inputTokens: -1 }],
  [{ outputTokens: Number.NaN }],
  [{ cachedTokens: Number.POSITIVE_INFINITY }],
])('steps whose usage cannot be are refused: %j', (usage) => {
  const done = (said: object): unknown => ({
    type: 'done',
    records: [[1, [[0, '{}', 0, null, said]], []]],
    outcomes: [],
  })
  expect(isWorkerMessage(done({ inputTokens: 5, costUsd: 0.25 }))).toBe(true)
  expect(isWorkerMessage(done(usage))).toBe(false)
  // Nor may it hide in the body, where nothing counts it.
  expect(() => checkStep([0, JSON.stringify({ usage: { inputTokens: 5 } })])).toThrow('contains `usage`')
})

describe('codecs', () => {
  const hungry = { type: 'hungry' }
  const [v8, portable] = CODECS as [string, string]
  const heard = (agreed: string | undefined, ...codecs: string[]) => {
    const { delivered, codes, feed } = listener(checkWorkerMessage, agreed ?? PLAIN)
    for (const codec of codecs) feed(encode([hungry], codec))
    return codes.length > 0 ? 'broken' : delivered.length
  }

  it('are JSON for first words, and then only the one that was agreed on', () => {
    expect(heard(undefined, PLAIN, PLAIN)).toBe(2)
    for (const codec of CODECS) expect(heard(undefined, codec)).toBe('broken')
    // First words may be under way when the answer to them is sent.
    expect(heard(v8, PLAIN, PLAIN, v8, v8)).toBe(4)
    expect(heard(v8, v8, PLAIN)).toBe('broken')
    expect(heard(v8, portable)).toBe('broken')
    expect(heard(portable, v8)).toBe('broken')
    expect(heard(portable, portable, PLAIN)).toBe('broken')
  })

  it('do not read what takes long to read, or claims much', () => {
    const digits = JSON.stringify([[1], ['BigInt', '9'.repeat(1_000_000)]])
    const roomy = JSON.stringify([[1], ['Bytes', 2], [3, 4, 5], 'ArrayBuffer', '', 2 ** 40])
    for (const text of [digits, roomy]) {
      const { codes, reasons, feed } = listener(checkWorkerMessage, portable)
      feed(Buffer.concat([Uint8Array.of(KIND.portable), Buffer.from(text)]))
      expect(codes).toEqual(['PROTOCOL_ERROR'])
      expect(reasons[0]).toMatch(/a BigInt that is too long|a buffer that may grow/)
    }
  })

  it('are JSON only for words that are short', () => {
    const { codes, feed } = listener(checkWorkerMessage, PLAIN)
    feed(encode([{ type: 'hungry', more: 'x'.repeat(5_000_000) }], PLAIN))
    expect(codes).toEqual(['PROTOCOL_ERROR'])
  })
})

it.each(WRONG_PARTS)('%s that cannot be is refused', (_, check, message) => {
  expect(check(message)).toBeTypeOf('string')
})

describe('fragments and credit', () => {
  const broken = (...frames: Uint8Array[]) => {
    const { codes, feed } = listener(checkWorkerMessage)
    for (const frame of frames) feed(frame)
    return codes
  }
  const piece = (stream: number, size: number, last = false) =>
    fragmentFrame({ stream, last, bytes: new Uint8Array(size) })

  it('are refused when they are malformed', () => {
    expect(broken(Uint8Array.of(KIND.fragment, 1, 0, 0, 0))).toEqual(['PROTOCOL_ERROR'])
    expect(broken(Uint8Array.of(KIND.fragment, 1, 0, 0, 0, 2, 0))).toEqual(['PROTOCOL_ERROR'])
    expect(broken(Uint8Array.of(KIND.credit, 1, 0, 0, 0))).toEqual(['PROTOCOL_ERROR'])
    for (const bytes of [-1, NaN, Infinity])
      expect(broken(creditFrame({ stream: 1, bytes }))).toEqual(['PROTOCOL_ERROR'])
    expect(broken(creditFrame({ stream: 1, bytes: 5 }))).toEqual([])
  })

  it('are refused when they are small and not the last, or make up no batch', () => {
    expect(broken(piece(1, 0))).toEqual(['PROTOCOL_ERROR'])
    expect(broken(piece(1, 100))).toEqual(['PROTOCOL_ERROR'])
    expect(broken(piece(1, 0, true))).toEqual(['PROTOCOL_ERROR'])
    const inner = creditFrame({ stream: 1, bytes: 1 })
    expect(broken(fragmentFrame({ stream: 1, last: true, bytes: inner }))).toEqual(['PROTOCOL_ERROR'])
  })

  /** Feeds fragments that never end, each to the next stream in turn, until the channel has enough: so much it took. */
  function heldBefore(streams: number): number {
    const { codes, feed } = listener(checkWorkerMessage)
    // The same memory every time: what is counted is what a channel would have held.
    const frame = Buffer.from(piece(1, 64 * 1024))
    for (let count = 0; count < 20_000; count++) {
      frame.writeUInt32LE(1 + (count % streams), 1)
      feed(frame)
      if (codes.length > 0) return count * 64 * 1024
    }
    return Number.POSITIVE_INFINITY
  }

  it('hold no more memory than they may, however they are sent', () => {
    const mb = 1024 * 1024
    // One message has a largest size.
    expect(heldBefore(1)).toBeLessThan(530 * mb)
    // Many have credit for a while, and then only the oldest goes on.
    for (const streams of [10, 100, 256]) expect(heldBefore(streams)).toBeLessThan(400 * mb)
    expect(heldBefore(100_000)).toBeLessThan(17 * mb)
  })
})
