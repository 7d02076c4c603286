import { isDeepStrictEqual } from 'node:util'
import { deserialize, serialize } from 'node:v8'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { frameReader } from '../../src/engines/frames.ts'
import { Channel, type Wire } from '../../src/protocol/channel.ts'
import { agree, CODECS, decode, encode, PLAIN } from '../../src/protocol/codec.ts'
import { pack, unpack } from '../../src/protocol/pack.ts'
import { KIND } from '../../src/protocol/raw-frames.ts'
import { IdSet } from '../../src/runners/id-set.ts'
import { ListMemory } from '../../src/trajectory/list-memory.ts'
import { type PackedStep, packStep } from '../../src/trajectory/packed-step.ts'
import type { NoteStep } from '../../src/trajectory/step.ts'
import { unpackSteps } from '../../src/trajectory/unpack-steps.ts'

/** Whatever structured clone can carry. */
const value = fc.anything({
  withBigInt: true,
  withDate: true,
  withMap: true,
  withSet: true,
  withTypedArray: true,
  withSparseArray: true,
  withNullPrototype: true,
})

describe('values on their way', () => {
  it('arrive as structured clone would bring them', () => {
    fc.assert(
      fc.property(value, (original) => {
        const expected = deserialize(serialize(original))
        // Through a frame, as in life.
        const arrived = unpack(deserialize(serialize([pack(original)]))[0])
        expect(arrived).toStrictEqual(expected)
      }),
      { numRuns: 2000 },
    )
  })

  it('arrive the same when they are large', () => {
    fc.assert(
      fc.property(
        fc.array(fc.jsonValue(), { minLength: 60, maxLength: 80 }),
        fc.string({ minLength: 1 }),
        (list, text) => {
          const original = { list, text: text.repeat(20_000) }
          expect(unpack(pack(original))).toStrictEqual(deserialize(serialize(original)))
        },
      ),
      { numRuns: 50 },
    )
  })

  it('do not change when their owner changes them later', () => {
    const owned = { list: [1, { deep: 'before' }], more: 'x'.repeat(20_000) }
    const small = { deep: { text: 'before' } }
    const packed = [pack(owned), pack(small)]
    ;(owned.list[1] as { deep: string }).deep = 'after'
    small.deep.text = 'after'
    expect(packed.map(unpack)).toMatchObject([{ list: [1, { deep: 'before' }] }, { deep: { text: 'before' } }])
  })

  it('may be a graph in which exponentially many paths lead to one object', () => {
    let node: object = { end: true }
    for (let i = 0; i < 40; i++) node = { left: node, right: node }
    expect(unpack(pack(node))).toHaveProperty('left.right.left')
  })

  it('may be nested a thousand levels deep, in every codec, and are refused beyond', () => {
    const nested = (depth: number) => {
      let list: unknown[] = [new Map()]
      for (let i = 0; i < depth; i++) list = i % 2 === 0 ? [list] : Object.assign([list], { odd: true })
      return list
    }
    const deep = nested(990)
    for (const codec of CODECS) expect(unpack(decode(encode([pack(deep)], codec))[0])).toBeInstanceOf(Array)
    expect(() => pack(nested(1100))).toThrow('it is nested more than 1000 levels deep')
  })
})

/** Graphs, and what a plain description of values does not come upon. */
const oddValue = fc.oneof(
  value,
  fc.string({ unit: 'binary' }),
  fc.date({ noInvalidDate: false }),
  fc
    .constantFrom<() => unknown>(
      () => /a"<\/x/giu,
      () => 'abc'.match(/(?<letter>b)/),
      () => [Object(1), Object('s'), Object(1n), Object(-0), Object(false), Object('')],
      () => [Buffer.from('abc'), Buffer.alloc(0), new ArrayBuffer(3), new ArrayBuffer(3, { maxByteLength: 9 })],
      () => [
        new DataView(new ArrayBuffer(9), 2, 3),
        new Uint8Array(new ArrayBuffer(9), 2, 3),
        new BigInt64Array([-1n]),
      ],
      () => Object.assign([], { 100000: 1 }),
      () => [undefined, -0, NaN, Infinity, -Infinity, 2n ** 80n, -1n, null],
      () => JSON.parse('{"__proto__":{"polluted":true},"constructor":{"prototype":1}}'),
      () => [new Error(), new TypeError('t', { cause: new Map([[1, 2]]) }), new (class Mine extends Error {})('m')],
      () => Object.assign(new Error('renamed'), { name: 'RangeError', stack: 5, extra: 1 }),
      () => {
        const circle: Record<string, unknown> = { list: [] }
        circle.self = circle
        circle.map = new Map([[circle, new Set([circle])]])
        circle.error = new Error('e', { cause: circle })
        circle.listed = Object.assign([circle], { circle })
        return circle
      },
    )
    .map((make) => make()),
)

/** As it is after a journey in a message, in the packed place and as a step. */
function sent(original: unknown, codec: string): [answer: unknown, step: unknown] {
  const frame = encode(
    [
      {
        packed: pack(original),
        steps: [packStep({ index: 0, atMs: 0, kind: 'note', data: original }, () => new ListMemory())],
      },
    ],
    codec,
  )
  const [message] = decode(frame) as [{ packed: unknown; steps: PackedStep[] }]
  return [unpack(message.packed), (unpackSteps(message.steps)[0] as NoteStep).data]
}

describe.each(['v8', 'devalue'])('the codec %s', (name) => {
  const codec = CODECS.find((known) => known.startsWith(name))!

  it('brings values back as structured clone would', () => {
    fc.assert(
      fc.property(oddValue, (original) => {
        const expected = deserialize(serialize(original))
        for (const arrived of sent(original, codec)) {
          if (!isDeepStrictEqual(arrived, expected)) expect(arrived).toStrictEqual(expected)
          expect(isDeepStrictEqual(arrived, expected)).toBe(true)
        }
      }),
      { numRuns: 2000 },
    )
    expect({}).not.toHaveProperty('polluted')
  })

  it('brings messages back as they were, whatever is in them', () => {
    // Bytes are left out: in a message they always hold a value.
    const message = fc.anything({
      withBigInt: true,
      withDate: true,
      withMap: true,
      withSet: true,
      withNullPrototype: true,
    })
    fc.assert(
      fc.property(fc.array(message), (messages) => {
        expect(decode(encode(messages, codec))).toStrictEqual(deserialize(serialize(messages)))
      }),
      { numRuns: 500 },
    )
  })

  it('keeps who is who', () => {
    const shared = { text: 'shared' }
    const error: Error = new TypeError('outer')
    error.cause = { error, shared }
    const list = Object.assign([shared], { error })
    const [back] = sent(new Map<string, unknown>(Object.entries({ shared, error, list })), codec)
    const arrived = Object.fromEntries(back as Map<string, unknown>) as {
      shared: object
      error: Error & { cause: Record<string, unknown> }
      list: unknown[] & { error: Error }
    }
    const { cause, stack, message, name } = arrived.error
    expect([stack, message, name]).toEqual([error.stack, 'outer', 'TypeError'])
    expect(cause.error).toBe(arrived.error)
    expect(cause.shared).toBe(arrived.shared)
    expect(arrived.list[0]).toBe(arrived.shared)
    expect(arrived.list.error).toBe(arrived.error)
  })

  it('keeps the marks of packed values', () => {
    const text = { list: Array.from({ length: 100 }, (_, place) => ({ place })) }
    const [json, bytes] = decode(encode([pack(text), pack(new Map())], codec))
    expect(json).toBeInstanceOf(String)
    expect(bytes).toBeInstanceOf(Uint8Array)
    expect([unpack(json), unpack(bytes)]).toEqual([text, new Map()])
  })
})

describe('codecs', () => {
  it('are agreed on: the best of ours that they have', () => {
    expect(agree(['devalue/1', 'v8/0', CODECS[0]!])).toBe(CODECS[0])
    expect(agree(['v8/0', 'devalue/1'])).toBe('devalue/1')
    expect(agree(['v8/0', 'devalue/9'])).toBeUndefined()
  })

  it('are told apart by the first byte', () => {
    const kinds = [PLAIN, ...CODECS].map((codec) => encode([{ type: 'x' }], codec)[0])
    expect(kinds).toEqual([KIND.plain, KIND.v8, KIND.portable])
    for (const codec of [PLAIN, ...CODECS]) expect(decode(encode([{ type: 'x' }], codec))).toEqual([{ type: 'x' }])
  })
})

describe('frames', () => {
  it('are found however the stream is cut', () => {
    fc.assert(
      fc.property(
        fc.array(fc.uint8Array({ maxLength: 300 }), { maxLength: 20 }),
        fc.array(fc.integer({ min: 1, max: 50 }), { minLength: 1 }),
        (frames, cuts) => {
          const stream = Buffer.concat(
            frames.map((frame) => {
              const header = Buffer.alloc(4)
              header.writeUInt32LE(frame.length)
              return Buffer.concat([header, frame])
            }),
          )
          const found: Buffer[] = []
          const read = frameReader((frame) => found.push(Buffer.from(frame)), expect.fail)
          for (let at = 0, i = 0; at < stream.length; i++) {
            const end = Math.min(stream.length, at + cuts[i % cuts.length]!)
            read(stream.subarray(at, end))
            at = end
          }
          expect(found).toEqual(frames.map((frame) => Buffer.from(frame)))
        },
      ),
      { numRuns: 500 },
    )
  })

  it('of an impossible length are refused', () => {
    const reasons: string[] = []
    frameReader(
      () => expect.fail(),
      (reason) => reasons.push(reason),
    )(Buffer.from([0xff, 0xff, 0xff, 0xff]))
    expect(reasons).toEqual(['a frame of 4294967295 bytes'])
  })
})

interface Note {
  type: 'note'
  key: number
  place: number
  payload: unknown
}

/** Two channels back to back, over wires that take a few frames and then ask to wait. */
function pair(receive: (note: Note) => void) {
  const broken = (error: Error) => expect.fail(error.message)
  const listeners: ((frame: Uint8Array) => void)[] = []
  const queue: [to: number, frame: Uint8Array][] = []
  const drains: (() => void)[] = []
  const wire = (self: number): Wire => ({
    send(frame) {
      queue.push([1 - self, frame])
      return queue.length < 3
    },
    onDrain: (listener) => void drains.push(listener),
    onFrame: (listener) => {
      listeners[self] = listener
    },
  })
  const anyNote = () => undefined
  const a = new Channel<Note, Note>(wire(0), anyNote, receive, broken)
  const b = new Channel<Note, Note>(wire(1), anyNote, receive, broken)
  for (const end of [a, b]) end.speak(CODECS[0]!)
  const settle = () => {
    while (queue.length > 0) {
      const [to, frame] = queue.shift()!
      listeners[to]!(frame)
      if (queue.length === 0) for (const drain of drains) drain()
    }
  }
  return { a, settle }
}

describe('a channel', () => {
  it('delivers everything once, and keeps order within a key, whatever the sizes', () => {
    const message = fc.record({
      key: fc.integer({ min: 1, max: 4 }),
      size: fc.constantFrom(10, 1000, 300_000, 2_500_000),
      settle: fc.boolean(),
    })
    fc.assert(
      fc.property(fc.array(message, { maxLength: 25 }), (messages) => {
        const got: Note[] = []
        const { a, settle } = pair((note) => got.push(note))
        messages.forEach(({ key, size, settle: now }, place) => {
          a.post({ type: 'note', key, place, payload: Buffer.alloc(size, place) }, size, key)
          if (now) settle()
        })
        settle()
        expect(got.length).toBe(messages.length)
        for (const key of [1, 2, 3, 4]) {
          const places = got.filter((note) => note.key === key).map(({ place }) => place)
          expect(places).toEqual(places.toSorted((x, y) => x - y))
        }
        for (const { place, payload } of got)
          expect((payload as Buffer).equals(Buffer.alloc(messages[place]!.size, place))).toBe(true)
      }),
      { numRuns: 60 },
    )
  })

  it('lets control and small messages overtake a large one', () => {
    const got: number[] = []
    const { a, settle } = pair(({ place }) => got.push(place))
    a.post({ type: 'note', key: 1, place: 0, payload: Buffer.alloc(5_000_000) }, 5_000_000, 1)
    a.post({ type: 'note', key: 2, place: 1, payload: 'small' }, 5, 2)
    a.control({ type: 'note', key: 3, place: 2, payload: 'control' })
    settle()
    expect(got).toEqual([2, 1, 0])
  })

  it('delivers more large messages than may be under way at once', () => {
    const got = new Set<number>()
    const { a, settle } = pair(({ place }) => got.add(place))
    const payload = Buffer.alloc(300_000)
    for (let place = 0; place < 600; place++)
      a.post({ type: 'note', key: place + 1, place, payload }, 300_000, place + 1)
    settle()
    expect(got.size).toBe(600)
  })

  it('breaks when a message cannot be said, and does not throw', () => {
    const codes: string[] = []
    const wire: Wire = { send: () => expect.fail(), onDrain: () => {}, onFrame: () => {} }
    const channel = new Channel<Note, Note>(
      wire,
      () => undefined,
      () => {},
      ({ code }) => codes.push(code),
    )
    channel.control({ type: 'note', key: 1, place: 1, payload: 1n })
    expect(codes).toEqual(['PROTOCOL_ERROR'])
  })
})

describe('ids of a stream', () => {
  it('are told apart, and recognised', () => {
    const ids = new IdSet()
    for (let i = 0; i < 200_000; i++) expect(ids.add(`task-${i}`)).toBe(true)
    for (let i = 0; i < 200_000; i += 997) expect(ids.add(`task-${i}`)).toBe(false)
  })
})
