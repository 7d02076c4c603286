import { deserialize, serialize } from 'node:v8'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { frameReader } from '../src/engines/frames.ts'
import { Channel, type Wire } from '../src/protocol/channel.ts'
import { pack, unpack } from '../src/protocol/pack.ts'
import { IdSet } from '../src/runners/id-set.ts'

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
  const a = new Channel<Note, Note>(wire(0), receive, broken)
  new Channel<Note, Note>(wire(1), receive, broken)
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

  it('reports garbage as an error with a code, and does not throw', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        let listener: (frame: Uint8Array) => void = () => {}
        const codes: string[] = []
        const wire: Wire = { send: () => true, onDrain: () => {}, onFrame: (on) => void (listener = on) }
        new Channel(
          wire,
          () => codes.push('delivered'),
          (error) => codes.push(error.code),
        )
        listener(bytes)
        expect(codes).toEqual(['PROTOCOL_ERROR'])
      }),
      { numRuns: 2000 },
    )
  })
})

describe('ids of a stream', () => {
  it('are told apart, and recognised', () => {
    const ids = new IdSet()
    for (let i = 0; i < 200_000; i++) expect(ids.add(`task-${i}`)).toBe(true)
    for (let i = 0; i < 200_000; i += 997) expect(ids.add(`task-${i}`)).toBe(false)
  })
})
