import { expect, test } from 'vitest'
import { toLossless } from '../../src/trajectory/lossless-json.ts'
import { wholeJson } from '../../src/view/read/cut-texts.ts'
import { inlineText } from '../../web/src/task/inline-text.ts'
import { readShown } from '../../web/src/task/shown-value.ts'

const shown = (value: unknown) => inlineText(readShown(toLossless(value)), 1000)

test('values without a form in JSON are shown as they are', () => {
  expect(shown([NaN, -0, Infinity, undefined, null])).toBe('[NaN, -0, Infinity, undefined, null]')
  expect(shown({ big: 12n, at: new Date(0), like: /a+/gi })).toBe(
    '{ big: 12n, at: 1970-01-01T00:00:00.000Z, like: /a+/gi }',
  )
  expect(shown(new Map([['a', new Set([1])]]))).toBe('{ Map: [["a", { Set: [1] }]] }')
  expect(shown({ $: 'cut', value: 1 })).toBe('{ $: "cut", value: 1 }')
})

test('arrays of numbers are arrays again, and __proto__ is a field', () => {
  expect(readShown(toLossless(Float64Array.of(-0.5, Number.NaN)))).toEqual(Float64Array.of(-0.5, Number.NaN))
  const value = readShown(JSON.parse('{"__proto__": {"a": 1}}')) as object
  expect(Object.keys(value)).toEqual(['__proto__'])
  expect((value as { a?: unknown }).a).toBeUndefined()
})

test('a text that the server cut is its beginning, and how much is missing is told', () => {
  const told: number[] = []
  const value = readShown({ text: { $: 'cut', value: 'abc', length: 10 } }, (...characters) => told.push(...characters))
  expect(value).toEqual({ text: 'abc…' })
  expect(told).toEqual([7, 10])
})

test('a value is sent whole only if its texts together are not too long', () => {
  const value = { $: 'abc', list: ['defg', 1, null, new Map([['h', 'ij']])] }
  expect(readShown(wholeJson(value, 20))).toEqual(readShown(toLossless(value)))
  expect(wholeJson({ list: ['abc', { d: 'efg' }] }, 5)).toBeUndefined()
})

test('marks that nobody knows are shown, and depth has a limit', () => {
  expect(inlineText(readShown({ $: 'Strange', value: [1] }), 100)).toBe('{ $: "Strange", value: [1] }')
  let deep: unknown = 1
  for (let level = 0; level < 100_000; level++) deep = [deep]
  expect(inlineText(readShown(deep), 100)).toBeUndefined()
})
