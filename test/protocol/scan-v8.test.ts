import { deserialize, serialize } from 'node:v8'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { whyTooManyKeys } from '../../src/protocol/count-keys.ts'
import { lastPackedSize, pack } from '../../src/protocol/pack.ts'
import { scanV8 } from '../../src/protocol/scan-v8.ts'
import { claiming, ODD_PACKED, raw, varint } from '../support/wrong-messages.ts'

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

const MADE: Readonly<Record<string, () => unknown>> = {
  'texts of one and two bytes a character': () => ['a', 'é', '€', 'x€', '👩‍👩‍👧', ''],
  numbers: () => [0, -0, -1, 1.5, 2 ** 31, -(2 ** 31), 2 ** 53, NaN, Infinity],
  'objects of primitives': () => [Object(1), Object('s'), Object('€'), Object(1n), Object(true), Object(false)],
  errors: () => [new Error('e'), new TypeError('€', { cause: { list: [new RangeError('r', { cause: new Map() })] } })],
  'an error without a stack': () => Object.assign(new Error('e'), { stack: undefined }),
  expressions: () => [/a"<\/x/giu, /€/v],
  bytes: () => [
    Buffer.from('abc'),
    new ArrayBuffer(3),
    new ArrayBuffer(3, { maxByteLength: 9 }),
    new Float64Array(3),
    new DataView(new ArrayBuffer(9), 2, 3),
  ],
  'arrays with holes and names': () => [
    Object.assign([], { 5: 1 }),
    Object.assign([1], { name: 'x', 7: 2 }),
    new Array(1000),
    'abc'.match(/(?<letter>b)/),
  ],
  'arrays that are long and nearly empty': () => [
    Object.assign([], { 4000000000: 1 }),
    Object.assign([], { 40000000: 1 }),
  ],
  'an array that is long and full': () => new Array(1_000_000).fill(7),
  circles: () => {
    const circle: Record<string, unknown> = {}
    return Object.assign(circle, { circle, map: new Map([[circle, new Set([circle])]]), list: [circle, circle] })
  },
}

describe('a scan of v8’s bytes', () => {
  it('lets through whatever v8 writes', () => {
    fc.assert(
      fc.property(value, (original) => {
        expect(scanV8(serialize(original))).toBeUndefined()
      }),
      { numRuns: 3000 },
    )
  })

  it.each(Object.keys(MADE))('lets through %s', (name) => {
    expect(scanV8(serialize(MADE[name]!()))).toBeUndefined()
    expect(scanV8(serialize({ in: [new Map([[1, MADE[name]!()]])] }))).toBeUndefined()
  })

  it('lets through nothing that costs more than it weighs, however good bytes were spoiled', () => {
    const written = Object.values(MADE).map((make) => serialize(make()).subarray(0, 4000))
    let [passed, read] = [0, 0]
    fc.assert(
      fc.property(
        fc.nat(written.length - 1),
        fc.array(fc.tuple(fc.nat(), fc.nat(255)), { minLength: 1, maxLength: 3 }),
        (which, changes) => {
          const bytes = Uint8Array.from(written[which]!)
          for (const [at, byte] of changes) bytes[2 + (at % (bytes.length - 2))] = byte
          if (scanV8(bytes) !== undefined) return
          passed++
          const before = process.memoryUsage()
          try {
            deserialize(bytes)
            read++
          } catch {
            // v8 knows more than the scan: references, expressions, numbers of properties.
          }
          const after = process.memoryUsage()
          expect(after.heapUsed - before.heapUsed + after.external - before.external).toBeLessThan(8 * 1024 * 1024)
        },
      ),
      { numRuns: 3000 },
    )
    expect(passed).toBeGreaterThan(100)
    expect(read).toBeGreaterThan(100)
  })

  it.each(
    Object.entries(ODD_PACKED).filter(
      ([name, make]) => make() instanceof Uint8Array && name !== 'a reference to nothing',
    ),
  )('refuses %s', (_, make) => {
    expect(scanV8(make() as Uint8Array)).toBeTypeOf('string')
  })

  it.each([
    ['in an object', (bytes: Buffer) => raw('o"\x01a', bytes, '{\x01')],
    ['in a map, as a key', (bytes: Buffer) => raw(';', bytes, '0:\x02')],
    ['in a set', (bytes: Buffer) => raw("'", bytes, ',\x01')],
    ['in an array with holes', (bytes: Buffer) => raw('a\x09I\x02', bytes, '@\x01\x09')],
    ['as a property of an array', (bytes: Buffer) => raw('A\0"\x01a', bytes, '$\x01\0')],
    ['as the cause of an error', (bytes: Buffer) => raw('rc', bytes, '.')],
    ['after padding', (bytes: Buffer) => raw('\0\0', bytes)],
  ])('finds a claim %s', (_, around) => {
    expect(scanV8(around(claiming(5)))).toBeUndefined()
    expect(scanV8(around(claiming(20_000_000)))).toMatch('20000000 places and nearly all of them are empty')
  })

  it('refuses numbers that are longer than any, and tags of things that are not sent', () => {
    expect(scanV8(raw('I', Buffer.alloc(5, 0xff), '\x01'))).toBeTypeOf('string')
    expect(scanV8(raw('"', Buffer.from([0xff, 0xff, 0xff, 0xff, 0x7f]), 'x'))).toBeTypeOf('string')
    for (const tag of ['t\0', 'u\0', 'w\0', 'm\0', 'p\0', '?\x010', 'B\x00VB\0\0\0', 'S\x01a'])
      expect(scanV8(raw(tag)), tag).toBeTypeOf('string')
    expect(scanV8(raw('"', varint(1), 'x'))).toBeUndefined()
  })
})

describe('what cannot be sent because it would cost too much to read', () => {
  it('is refused where it is packed, in words that help', () => {
    expect(() => pack({ list: Object.assign([], { 30000000: 1 }) })).toThrow(
      '`list` is an array of 30000001 places, of which more than 262144 are empty; send a Map or an object',
    )
    expect(() => pack(1n << 100_000n)).toThrow(
      'a BigInt has 100032 bits, and at most 65536 can be sent; send it as text',
    )
    expect(() => pack({ deep: [-(1n << 100_000n)] })).toThrow('send it as text')
  })

  it('counts the bytes of BigInts, so that many long ones do not go in one frame', () => {
    const packed = pack(Array.from({ length: 1000 }, () => 1n << 60_000n))
    expect(lastPackedSize(packed)).toBeGreaterThan(1000 * (60_000 / 8))
    expect(pack([1n << 63n, -5n])).toEqual([1n << 63n, -5n])
  })

  it('is an answer with too many keys, in JSON or not', () => {
    const most = 5000
    const fields = (count: number, value: unknown) =>
      Object.fromEntries(Array.from({ length: count }, (_, n) => [`a "key": \\${n}`, value]))
    const why = (answer: unknown) => whyTooManyKeys(pack(answer), most)
    for (const value of [1, undefined]) {
      expect(why(fields(most, value))).toBeUndefined()
      expect(why(fields(most + 1, value))).toContain('5001 keys and entries, and at most 5000')
    }
    const entries = new Map(Array.from({ length: most }, (_, n) => [n, n]))
    expect(why(entries)).toBeUndefined()
    expect(why([entries, new Set([1])])).toContain('5001')
    for (const text of ['":'.repeat(3 * most), '"a":1,'.repeat(2 * most), '\\'.repeat(20 * most)])
      for (const answer of [text, { text }, new Map([[text, text]])]) expect(why(answer)).toBeUndefined()
  })

  it('is far more than anybody sends', () => {
    for (const sent of [Object.assign([], { 200000: 1 }), (1n << 65_000n) - 1n]) expect(() => pack(sent)).not.toThrow()
  })
})
