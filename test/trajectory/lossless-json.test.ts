import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { NotLossless, toLossless } from '../../src/trajectory/lossless-json.ts'
import { fromLossless } from '../../src/trajectory/read-lossless.ts'
import { data } from './arbitrary.ts'

const back = (value: unknown) => fromLossless(JSON.parse(JSON.stringify(toLossless(value))))

describe('any value', () => {
  test.each([
    ['NaN', Number.NaN, { $: 'NaN' }],
    ['Infinity', Number.POSITIVE_INFINITY, { $: 'Infinity' }],
    ['-Infinity', Number.NEGATIVE_INFINITY, { $: '-Infinity' }],
    ['-0', -0, { $: '-0' }],
    ['undefined in a list', [undefined], [{ $: 'undefined' }]],
    ['undefined in an object', { a: undefined }, { a: { $: 'undefined' } }],
    ['an empty place', Object.assign(new Array(3), { 0: 1, 2: 3 }), [1, { $: 'empty' }, 3]],
    ['a bigint', 12n, { $: 'bigint', value: '12' }],
    ['a Date', new Date(7), { $: 'Date', value: 7 }],
    ['an invalid Date', new Date(Number.NaN), { $: 'Date', value: null }],
    ['a Map', new Map([[{ a: 1 }, -0]]), { $: 'Map', value: [[{ a: 1 }, { $: '-0' }]] }],
    ['a Set', new Set([1n]), { $: 'Set', value: [{ $: 'bigint', value: '1' }] }],
    ['token ids', new Int32Array([1, -2]), { $: 'Int32Array', value: [1, -2] }],
    ['log-probabilities', new Float64Array([-0.1, -0]), { $: 'Float64Array', value: [-0.1, { $: '-0' }] }],
    ['large numbers', new BigInt64Array([-1n]), { $: 'BigInt64Array', value: ['-1'] }],
    ['a buffer', new Uint8Array([1]).buffer, { $: 'ArrayBuffer', value: [1] }],
    ['a RegExp', /a"b/gi, { $: 'RegExp', value: ['a"b', 'gi'] }],
    ['a boxed number', Object(1), { $: 'boxed', value: 1 }],
    ['an object with a key $', { $: 'NaN' }, { $: 'object', value: { $: 'NaN' } }],
    ['plain data', { a: [1, 'x', null, true] }, { a: [1, 'x', null, true] }],
  ])('%s is written so that it comes back', (_name, value, json) => {
    expect(toLossless(value)).toEqual(json)
    expect(back(value)).toStrictEqual(value)
  })

  test('comes back, whatever is in what', () => {
    const anything = fc.anything({
      ...{
        withBigInt: true,
        withDate: true,
        withMap: true,
        withSet: true,
        withTypedArray: true,
        withSparseArray: true,
      },
      withBoxedValues: true,
    })
    fc.assert(
      fc.property(fc.oneof(data, anything), (value) => {
        expect(back(value)).toStrictEqual(value)
      }),
      { numRuns: 2000 },
    )
  })

  test('is left as it is, if JSON is enough', () => {
    const value = { a: [{ b: 1 }] }
    expect(toLossless(value)).toBe(value)
  })

  test('an error keeps its name, its message, its stack and its cause', () => {
    const error = new TypeError('no', { cause: new RangeError('why') })
    const read = back({ error }) as { error: TypeError }
    expect(read.error).toBeInstanceOf(TypeError)
    expect(read.error).toMatchObject({ name: 'TypeError', message: 'no', stack: error.stack })
    expect(read.error.cause).toMatchObject({ name: 'RangeError', message: 'why' })
    const odd = Object.assign(new Error('x'), { name: 'Odd' })
    expect(back(odd)).toMatchObject({ name: 'Odd', message: 'x' })
  })

  test('an object inside itself is inside itself again', () => {
    const value: Record<string, unknown> = { list: [], map: new Map() }
    ;(value.list as unknown[]).push(value, value.list)
    ;(value.map as Map<string, unknown>).set('up', value)
    const read = back(value) as { list: unknown[]; map: Map<string, unknown> }
    expect(read.list).toEqual([read, read.list])
    expect(read.list[0]).toBe(read)
    expect(read.map.get('up')).toBe(read)
  })

  test('a key __proto__ is a key', () => {
    const value = JSON.parse('{"__proto__":{"polluted":true},"n":1}') as object
    const read = back([value, -0]) as [object]
    expect(Object.keys(read[0])).toEqual(['__proto__', 'n'])
    expect((read[0] as { polluted?: boolean }).polluted).toBeUndefined()
  })
})

describe('what cannot be written, or was not written by us, is one clear error', () => {
  test.each([
    ['a function', () => {}],
    ['a symbol', [Symbol('s')]],
  ])('%s', (_name, value) => expect(() => toLossless(value)).toThrow(NotLossless))

  test('a graph with more paths than anybody can walk, and a nesting without end', () => {
    let deep: unknown = -0
    for (let i = 0; i < 5000; i++) deep = [deep]
    expect(() => toLossless(deep)).toThrow('levels deep')
    expect(() => fromLossless(JSON.parse(`${'['.repeat(5000)}${']'.repeat(5000)}`))).toThrow('levels deep')
  })

  test.each([
    { $: 'Unheard' },
    { $: 'constructor', value: [] },
    { $: 'bigint', value: '1e5' },
    { $: 'bigint' },
    { $: 'Date', value: 'today' },
    { $: 'Map', value: 1 },
    { $: 'Map', value: [1] },
    { $: 'Set' },
    { $: 'Int32Array', value: [1.5] },
    { $: 'Int32Array', value: ['1'] },
    { $: 'Uint8Array', value: [256] },
    { $: 'RegExp', value: ['(', ''] },
    { $: 'object' },
    { $: 'above', value: 9 },
    { $: 'Error' },
  ])('%j', (json) => expect(() => fromLossless([json])).toThrow(NotLossless))

  test('a bigint that takes long to read', () => {
    expect(() => fromLossless({ $: 'bigint', value: '9'.repeat(100_000) })).toThrow(NotLossless)
  })
})
