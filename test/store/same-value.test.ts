import { isDeepStrictEqual } from 'node:util'
import { deserialize, serialize } from 'node:v8'
import { expect, it } from 'vitest'
import { isSameValue } from '../../src/store/same-value.ts'

const circle: Record<string, unknown> = { n: 1 }
circle.self = circle
const VALUES = [
  ...[undefined, null, true, 0, -0, 1, 1n, '', 'a', Number.NaN],
  ...[
    [],
    [1],
    [undefined],
    new Array(1),
    [1, 2],
    [[1]],
    {},
    { a: 1 },
    { a: undefined },
    { b: 1 },
    { a: 1, b: 1 },
    { a: [] },
  ],
  ...[new Map(), new Map([[1, 2]]), new Map([[{ a: 1 }, 2]]), new Set(), new Set([1]), new Set([{ a: 1 }])],
  ...[new Date(0), new Date(1), /a/, /a/g, new Number(1), new String('1')],
  ...[new Uint8Array(2), new Uint8Array([1, 2]), new Int8Array(2), new ArrayBuffer(2), new Float64Array([Number.NaN])],
  ...[
    new Error('a'),
    new Error('b'),
    new TypeError('a'),
    new Error('a', { cause: 1 }),
    circle,
    { n: 1, self: { n: 1 } },
  ],
]

it('tells which values are the same, as isDeepStrictEqual does', () => {
  for (const [i, one] of VALUES.entries())
    for (const [j, other] of VALUES.entries()) {
      const [a, b] = [deserialize(serialize(one)), deserialize(serialize(other))]
      // The stacks of two errors differ; here they are not to count.
      for (const error of [a, b]) if (error instanceof Error) error.stack = ''
      expect([i, j, isSameValue(a, b)]).toEqual([i, j, isDeepStrictEqual(a, b)])
    }
})

it('takes time that grows with the size only', () => {
  const members = () => new Set(Array.from({ length: 200_000 }, (_, i) => ({ i })))
  expect(isSameValue(members(), members())).toBe(true)
  expect(isSameValue(members(), members().add({ i: -1 }))).toBe(false)
})
