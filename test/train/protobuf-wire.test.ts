import { BinaryReader, BinaryWriter, WireType as LibraryType } from '@bufbuild/protobuf/wire'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { WireReader, WireType, WireWriter } from '../../src/train/protobuf-wire.ts'

const field = fc.integer({ min: 1, max: 2 ** 29 - 1 })
const message = fc.array(
  fc.oneof(
    fc.tuple(fc.constant('bytes' as const), field, fc.uint8Array({ maxLength: 600 })),
    fc.tuple(fc.constant('string' as const), field, fc.string({ unit: 'grapheme' })),
    fc.tuple(fc.constant('int64' as const), field, fc.maxSafeInteger()),
    fc.tuple(fc.constant('int32' as const), field, fc.integer()),
    fc.tuple(fc.constant('bool' as const), field, fc.boolean()),
    fc.tuple(fc.constant('float' as const), field, fc.float()),
    fc.tuple(fc.constant('double' as const), field, fc.double()),
  ),
)

const TYPES = { bytes: 2, string: 2, int64: 0, int32: 0, bool: 0, float: 5, double: 1 } as const

it('writes what the Protobuf library writes, and reads it back', () => {
  expect(Object.values(WireType).every((type) => LibraryType[type] !== undefined)).toBe(true)
  fc.assert(
    fc.property(message, (fields) => {
      const [ours, theirs] = [new WireWriter(), new BinaryWriter()]
      for (const [kind, number, value] of fields) {
        ;(ours.tag(number, TYPES[kind])[kind] as (value: unknown) => unknown)(value)
        ;(theirs.tag(number, TYPES[kind])[kind] as (value: unknown) => unknown)(value)
      }
      const bytes = ours.finish()
      expect(Buffer.from(bytes).equals(theirs.finish())).toBe(true)
      const [reader, library] = [new WireReader(bytes), new BinaryReader(bytes)]
      for (const [kind] of fields) {
        const [number, type] = library.tag()
        expect(reader.tag()).toEqual([number, type])
        if (kind === 'bool' || kind === 'float') reader.skip(type)
        else if (kind === 'int64') expect(reader.int64()).toBe(Number(library.int64()))
        else expect(reader[kind]()).toEqual(library[kind]())
        if (kind === 'bool' || kind === 'float') library.skip(type)
      }
      expect(reader.atEnd).toBe(true)
    }),
  )
})

it('refuses bytes that are no message', () => {
  const readAll = (bytes: Uint8Array) => {
    const reader = new WireReader(bytes)
    while (!reader.atEnd) reader.skip(reader.tag()[1])
  }
  for (const [bytes, why] of [
    [[0x0a, 5, 1], 'ends too early'],
    [[0x08], 'ends too early'],
    [[0x09, 1, 2, 3], 'ends too early'],
    [[0x00, 1], 'number 0'],
    [[0x0b], 'unknown wire type 3'],
    [[0x08, ...Array<number>(10).fill(0xff), 1], 'more than 64 bits'],
    [[0x0a, ...Array<number>(9).fill(0xff), 1], 'ends too early'],
  ] as const)
    expect(() => readAll(Uint8Array.from(bytes))).toThrow(why)
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
      try {
        readAll(bytes)
      } catch (error) {
        expect(error).toBeInstanceOf(RangeError)
      }
    }),
  )
})
