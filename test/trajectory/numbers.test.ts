import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { decodeNumbers, encodeNumbers, isNumberArray, type NumberArray } from '../../src/trajectory/numbers.ts'

const doubles = fc.oneof(
  fc.double(),
  fc.constantFrom(Number.NaN, -0, 0, Infinity, -Infinity, 5e-324, 2 ** 53 - 1, 2 ** 53),
)
const floats = fc.oneof(fc.float(), fc.constantFrom(-0, Infinity))
const ids = fc.oneof(fc.nat({ max: 200_000 }), fc.constantFrom(0, 127, 128, 16_383, 16_384, 2 ** 31, 2 ** 53 - 1))

const arrays = fc.oneof(
  fc.array(doubles),
  fc.array(floats),
  fc.array(ids),
  fc.int8Array(),
  fc.uint8Array(),
  fc.uint8ClampedArray(),
  fc.int16Array(),
  fc.uint16Array(),
  fc.int32Array(),
  fc.uint32Array(),
  fc.float32Array(),
  fc.float64Array(),
)

describe('a list of numbers', () => {
  it('comes back with the same numbers, in the same kind of array', () => {
    fc.assert(
      fc.property(arrays, (numbers: NumberArray) => {
        const back = decodeNumbers(encodeNumbers(numbers))
        expect(Object.getPrototypeOf(back)).toBe(Object.getPrototypeOf(numbers))
        expect(back.length).toBe(numbers.length)
        // toEqual would take -0 for 0.
        for (let i = 0; i < numbers.length; i++) expect(Object.is(back[i], numbers[i])).toBe(true)
      }),
      { numRuns: 2000 },
    )
  })

  it('takes two or three bytes for a token id, four for a 32-bit float, eight for any other', () => {
    const size = (numbers: NumberArray) => encodeNumbers(numbers).byteLength
    expect(size(Int32Array.from([5, 300, 50_256]))).toBe(2 + 1 + 2 + 3)
    expect(size([-0.5, Number.NaN, -0])).toBe(2 + 3 * 4)
    expect(size([-0.1])).toBe(2 + 8)
    expect(size(new Uint8Array(1000).fill(255))).toBe(2 + 1000)
  })

  it('of another kind, or with anything else in it, is none', () => {
    for (const other of [
      Buffer.from('ab'),
      new BigInt64Array(2),
      [1, '2'],
      Object.assign(new Array(3), { 0: 1, 2: 3 }),
      { length: 1, 0: 1 },
      new DataView(new ArrayBuffer(8)),
    ])
      expect(isNumberArray(other)).toBe(false)
  })

  it('that is malformed is refused', () => {
    for (const bytes of [[], [99, 0], [0, 9], [0, 0, 128], [0, 1, 1, 2, 3], [9, 2, 1]])
      expect(() => decodeNumbers(new Uint8Array(bytes).buffer)).toThrow(RangeError)
  })
})
