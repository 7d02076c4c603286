import fc from 'fast-check'
import type { Grade, Grader, GradeSample } from 'manyworlds'
import { exactMatch, gaiaMatch, gradeHere, includes, json, numeric, regex, weighted } from 'manyworlds/grade'
import { describe, expect, it } from 'vitest'
import * as z from 'zod'
import { equals, looks } from '../agents/graded.ts'
import { cpuMs } from '../support/cpu-ms.ts'

const graded = (grader: Grader, answer: unknown, groundTruth: unknown): Promise<Grade> =>
  gradeHere(grader, { answer, groundTruth })
const isSolved = async (grader: Grader, answer: unknown, groundTruth: unknown) => {
  const { success, reward } = await graded(grader, answer, groundTruth)
  expect(reward).toBe(success ? 1 : 0)
  return success
}

describe('exactMatch', () => {
  it.each<[unknown, unknown, boolean]>([
    ['Paris', 'Paris', true],
    [' Paris\n', 'Paris', true],
    ['paris', 'Paris', false],
    ['Paris.', 'Paris', false],
    [42, '42', true],
    [true, 'true', true],
    [10n, 10, true],
    ['', '', true],
    [undefined, 'Paris', false],
    [null, 'null', false],
    [null, null, true],
    [{ b: [1, 2], a: 1 }, { a: 1, b: [1, 2] }, true],
    [{ a: 1 }, { a: 1, b: undefined }, false],
    [[1, 2], [2, 1], false],
    ['[object Object]', {}, false],
    [new Date(1), new Date(2), false],
    [new Date(1), new Date(1), true],
    [new Map([[1, 2]]), new Map([[1, 3]]), false],
  ])('%o for %o: %s', async (answer, truth, solved) => {
    expect(await isSolved(exactMatch(), answer, truth)).toBe(solved)
  })

  it('can ignore case, keep white space, and take one of several', async () => {
    expect(await isSolved(exactMatch({ ignoreCase: true }), 'PARIS', 'Paris')).toBe(true)
    expect(await isSolved(exactMatch({ trim: false }), 'Paris ', 'Paris')).toBe(false)
    expect(await isSolved(exactMatch({ oneOf: true }), 'b', ['a', 'b'])).toBe(true)
    expect(await isSolved(exactMatch(), 'b', ['a', 'b'])).toBe(false)
  })

  it('says what was expected, in one short line', async () => {
    const { feedback } = await graded(exactMatch(), `\u001b[31m${'x'.repeat(1e6)}`, 'Paris')
    expect(feedback).toMatch(/^the answer is "\\x1b\[31mx+…"; expected "Paris"$/)
    expect(feedback!.length).toBeLessThan(300)
  })
})

describe('numeric', () => {
  it.each<[unknown, unknown, boolean]>([
    ['42', 42, true],
    [' 42. ', 42, true],
    ['42.0', '42', true],
    ['1,234,567.5', 1234567.5, true],
    ['1 234 567', 1234567, true],
    ['1’234', 1234, true],
    ['1_000_000', 1e6, true],
    ['1,5', 1.5, false],
    ['1,5', 15, false],
    ['12,34', 1234, false],
    ['1,2345', 12345, false],
    ['-3', -3, true],
    ['−3', -3, true],
    ['+3', 3, true],
    ['- 3', -3, true],
    ['3', -3, false],
    ['1e3', 1000, true],
    ['6.02E23', 6.02e23, true],
    ['.5', 0.5, true],
    ['$1,200', 1200, true],
    ['-$5', -5, true],
    ['$-5', -5, true],
    ['12 %', 12, true],
    ['5 km', 5, true],
    ['5km', '5 KM', true],
    ['5 km', '5 m', false],
    ['5 m/s', '5 m/s', true],
    ['2.5 million', 2_500_000, true],
    ['2.5 million dollars', 2_500_000, true],
    ['3 millionaires', 3, true],
    ['2k', 2000, true],
    ['2k', 2, false],
    ['2.5K', 2500, true],
    ['5M', 5_000_000, true],
    ['5M', 5, false],
    ['-3bn', -3e9, true],
    ['3bn', 3, false],
    ['3B', 3e9, true],
    ['1.5m', 1.5, false],
    ['1.5m', 1_500_000, false],
    ['1.5b', 1.5, false],
    ['$1.5m', 1_500_000, true],
    ['$1.5m', 1.5, false],
    ['€2b', 2e9, true],
    ['2k dollars', '2000 dollars', true],
    ['2k/day', '2000 /day', true],
    ['5m', '5 m', true],
    ['5 m', '5m', true],
    ['5m', '5m', true],
    ['5m', '6m', false],
    ['5 m', 5, true],
    ['300K', '300 K', true],
    ['300K', '300000', true],
    ['$5k', '$5,000', true],
    ['5m/s', 5, true],
    ['5m²', 5, true],
    ['5kg', 5, true],
    ['5mm', 5, true],
    ['8bit', 8, true],
    ['1/2', 0.5, false],
    ['10-12', 10, false],
    ['', 0, false],
    ['   ', 0, false],
    ['0x10', 16, false],
    ['NaN', Number.NaN, false],
    ['the answer is 42', 42, false],
    ['42 is the answer, I think', 42, false],
    [42, 42, true],
    [0.1 + 0.2, 0.3, true],
    [-0, 0, true],
    [42n, 42, true],
    [null, 0, false],
    [[42], 42, false],
    [{}, 0, false],
    [Number.NaN, 0, false],
    [Number.POSITIVE_INFINITY, 1e308, false],
  ])('%s for %s: %s', async (answer, truth, solved) => {
    const grade = await graded(numeric(), answer, truth)
    expect(grade.success ?? false).toBe(solved)
  })

  it.each<[string, number, boolean]>([
    ['so 3 + 4 = 7.', 7, true],
    ['first 12, then 15; the answer is 1,234.', 1234, true],
    ['it is 1,2,3', 3, true],
    ['between 10-12', 12, true],
    ['it falls by -3', -3, true],
    ['x=-3', -3, true],
    ['GPT-4', 4, true],
    ['about .5', 0.5, true],
    ['version 1.2.3', 3, true],
    ['it is 2.5 million', 2_500_000, true],
    ['about 2k, I think', 2000, true],
    ['it is **5M**.', 5_000_000, true],
    ['it is 5m.', 5, false],
    ['it costs $5m.', 5_000_000, true],
    ['a 5kg bag', 5, true],
    ['in 2020 500 people', 500, true],
    ['none at all', 0, false],
    ['42', 42, true],
    ['7\n\nThat is all.', 7, true],
    [`${'9'.repeat(5)} ${'x'.repeat(20_000)}`, 99999, false],
  ])('the last number of %s is %d: %s', async (answer, truth, solved) => {
    expect(await isSolved(numeric({ last: true }), answer, truth)).toBe(solved)
  })

  it('says that a suffix is ambiguous', async () => {
    const { feedback } = await graded(numeric(), '5m', 5)
    expect(feedback).toBe('the answer is "5m": m may be a magnitude or a unit')
    expect((await graded(numeric(), 5, '5m')).feedback).toContain('the ground truth is "5m"')
    expect(await isSolved(numeric({ last: true }), 'it is 5m high', '5 m')).toBe(true)
  })

  it('is as tolerant as it is told', async () => {
    expect(await isSolved(numeric({ absolute: 0.5 }), '10.5', 10)).toBe(true)
    expect(await isSolved(numeric({ absolute: 0.5 }), '10.51', 10)).toBe(false)
    expect(await isSolved(numeric({ relative: 0.01 }), '-101', -100)).toBe(true)
    expect(await isSolved(numeric({ relative: 0.01 }), '-98.9', -100)).toBe(false)
    expect((await graded(numeric({ relative: 0.01 }), '5', 100)).feedback).toBe(
      'the answer is 5; expected 100 within 1 %',
    )
  })

  it('reads back every number that is written with separators', () => {
    const numbers = fc.oneof(fc.integer({ min: -1e9, max: 1e9 }), fc.double({ min: -1e6, max: 1e6, noNaN: true }))
    return fc.assert(
      fc.asyncProperty(numbers, async (number) => {
        const text = new Intl.NumberFormat('en-US', { maximumFractionDigits: 20 }).format(number)
        const { success, feedback } = await graded(numeric({ relative: 1e-12, absolute: 1e-20 }), text, number)
        expect(success, `${text}: ${feedback}`).toBe(true)
        expect(await isSolved(numeric({ last: true, absolute: 1e-20 }), `I get ${text}.`, number)).toBe(true)
      }),
      { numRuns: 500 },
    )
  })
})

describe('regex', () => {
  it('searches the answer', async () => {
    expect(await isSolved(regex(/^\d+ apples$/i), '12 APPLES', undefined)).toBe(true)
    expect(await isSolved(regex({ pattern: 'b+', flags: 'g' }), 'abc', undefined)).toBe(true)
    expect(await isSolved(regex(), 'abc', '^a.c$')).toBe(true)
    expect(await isSolved(regex(/x/), { x: 1 }, undefined)).toBe(false)
  })

  it('gives the same answer twice, also with the flag g', async () => {
    const grader = regex(/a/g)
    expect([await isSolved(grader, 'a', 0), await isSolved(grader, 'a', 0)]).toEqual([true, true])
  })

  it('does not search what is too long', async () => {
    const { success, feedback } = await graded(regex(/a/), 'a'.repeat(100_001), undefined)
    expect([success, feedback]).toEqual([false, 'the answer has 100001 characters; more than 100000 are not searched'])
    expect(await isSolved(regex({ pattern: 'a', maxChars: 1 }), 'aa', 0)).toBe(false)
  })

  it('refuses what is no pattern', async () => {
    expect(() => regex({ pattern: '(' })).toThrow(
      expect.objectContaining({
        code: 'GRADER_INVALID',
        message: expect.stringContaining('/(/ is not a valid regular expression'),
      }),
    )
    await expect(async () => graded(regex(), 'a', '(')).rejects.toMatchObject({ code: 'GRADER_INVALID' })
    expect(await graded(regex(), 'a', 5)).toMatchObject({ reward: null })
  })
})

describe('json', () => {
  it.each<[unknown, unknown, boolean]>([
    ['{"a": 1, "b": [true, null]}', { b: [true, null], a: 1 }, true],
    ['```json\n{"a": 1}\n```', { a: 1 }, true],
    ['```\n[1]\n```', [1], true],
    [{ a: 1 }, '{"a":1}', true],
    ['{"a":1}', '{"a":2}', false],
    ['null', null, true],
    ['null', 'null', true],
    ['hello', 'hello', true],
    ['hello', 'goodbye', false],
    ['"hello"', 'hello', true],
    ['{"a":1', { a: 1 }, false],
    ['', {}, false],
    ['{"a":1}{"a":1}', { a: 1 }, false],
    [`${'['.repeat(50_000)}`, [], false],
    [`${'['.repeat(5000)}${']'.repeat(5000)}`, [], false],
    ['{"__proto__": 1}', {}, false],
    [undefined, {}, false],
  ])('%.40j for %j: %s', async (answer, truth, solved) => {
    expect(await isSolved(json(), answer, truth)).toBe(solved)
  })

  it('says where data differs', async () => {
    const { feedback } = await graded(
      json(),
      { items: [{ price: 1 }, { price: 2, 'odd key': 1 }], extra: 1 },
      { items: [{ price: 1 }, { price: 3 }, {}], name: 'x' },
    )
    expect(feedback!.split('\n')).toEqual([
      'answer.items has 2 items, expected 3',
      'answer.items[1].price is 2, expected 3',
      'answer.items[1]["odd key"] is not expected',
      'answer.name is missing',
      'answer.extra is not expected',
    ])
  })

  it('can ignore keys that were not asked for', async () => {
    expect(await isSolved(json({ ignoreExtra: true }), { a: 1, b: { c: 2, d: 3 } }, { b: { c: 2 } })).toBe(true)
    expect(await isSolved(json({ ignoreExtra: true }), { b: {} }, { b: { c: 2 } })).toBe(false)
  })

  it('compares with a schema', async () => {
    const grader = json({ name: 'tagged', schema: z.object({ name: z.string(), tags: z.array(z.string()) }) })
    expect(await isSolved(grader, '{"name":"x","tags":["a"]}', undefined)).toBe(true)
    expect((await graded(grader, { name: 1, tags: ['a', 2] }, undefined)).feedback).toMatch(
      /^answer\.name: .+\nanswer\.tags\.1: .+$/,
    )
    expect(grader.name).toBe('tagged')
    expect(() => json({ schema: z.string() } as never)).toThrow(/`name` is required with `schema`/)
  })

  it('stops at data that is too deep to walk', async () => {
    const nested = () => {
      const outer: { inner?: unknown } = {}
      let inner = outer
      for (let i = 0; i < 200; i++) inner = inner.inner = {} as { inner?: unknown }
      return outer
    }
    const { success, feedback } = await graded(json(), nested(), nested())
    expect(success).toBe(false)
    expect(feedback).toContain('nested more than 100 levels deep')
  })
})

describe('gaiaMatch', () => {
  it.each<[unknown, unknown, boolean]>([
    // numbers
    ['42', '42', true],
    ['$1,234.50', '1234.5', true],
    ['17 %', '17', true],
    ['1e3', '1000', true],
    ['1_000', '1000', true],
    ['42 apples', '42', false],
    ['', '0', false],
    ['0x10', '16', false],
    [42, '42', true],
    ['42', 42, true],
    ['four', '4', false],
    // lists
    ['a, b, c', 'a,b,c', true],
    ['A;B', 'a, b', true],
    ['a, b', 'b, a', false],
    ['a, b', 'a, b, c', false],
    ['1, 2.0', '1;2', true],
    ['$1; 2%', '1, 2', true],
    ['St. Petersburg, Rome', 'St. Petersburg, Rome', true],
    ['St Petersburg, Rome', 'St. Petersburg, Rome', false],
    ['1,000', '1,000', true],
    ['1000', '1,000', false],
    ['new york, rome', 'New York, Rome', true],
    // text
    ['sea gull', 'Seagull', true],
    ['Seagull!', 'seagull', true],
    ['"The Cat."', 'the cat', true],
    ['a cat', 'the cat', false],
    ['Ünïcode', 'ünïcode', true],
    ['“cat”', 'cat', false],
    // the benchmark's script would take anything for infinity
    ['anything', 'Infinity', false],
    ['infinity', 'Infinity', true],
    ['nan', 'NaN', true],
    [null, 'None', false],
    [undefined, 'x', false],
    [{ answer: 'x' }, 'x', false],
  ])('%j for %j: %s', async (answer, truth, solved) => {
    expect(await isSolved(gaiaMatch(), answer, truth)).toBe(solved)
  })

  it('takes an answer that is the ground truth, whatever that is', () =>
    fc.assert(
      fc.asyncProperty(fc.string({ unit: 'grapheme' }), async (text) => {
        expect(await isSolved(gaiaMatch(), text, text)).toBe(true)
      }),
      { numRuns: 500 },
    ))
})

describe('includes', () => {
  it('finds the ground truth anywhere, and says that it is for evaluation only', async () => {
    expect(await isSolved(includes(), 'I think it is PARIS, or Rome', 'paris')).toBe(true)
    expect(await isSolved(includes({ ignoreCase: false }), 'PARIS', 'paris')).toBe(false)
    expect(await isSolved(includes(), { city: 'Paris' }, 'paris')).toBe(false)
    expect(includes().evaluationOnly).toBe(true)
    expect(exactMatch()).not.toHaveProperty('evaluationOnly')
  })

  it('is beaten by whoever lists every answer: that is why', async () => {
    expect(await isSolved(includes(), 'Paris Rome Berlin Madrid', 'Madrid')).toBe(true)
  })
})

describe('weighted', () => {
  const short = ({ answer }: GradeSample<unknown, string>) => (answer.length < 8 ? 1 : 0.5)

  it('is the mean of rewards by weight', async () => {
    const grader = weighted({ correct: [exactMatch(), 8], short: [short, 2] })
    expect(await graded(grader, 'Paris', 'Paris')).toEqual({
      reward: 1,
      success: true,
      parts: { correct: { value: 1, weight: 8 }, short: { value: 1, weight: 2 } },
    })
    expect(await graded(grader, 'London, I think', 'Paris')).toEqual({
      reward: 0.1,
      success: false,
      parts: { correct: { value: 0, weight: 8 }, short: { value: 0.5, weight: 2 } },
      feedback: 'correct: the answer is "London, I think"; expected "Paris"',
    })
  })

  it('is solved where all parts that say so are, and says nothing where none does', async () => {
    const both = weighted({ number: [numeric(), 1], text: [exactMatch(), 1] })
    expect(await graded(both, '4.0', '4')).toMatchObject({ reward: 0.5, success: false })
    expect(await graded(both, '4', '4')).toMatchObject({ reward: 1, success: true })
    expect(await graded(weighted({ short: [short, 1] }), 'x', 0)).toMatchObject({ success: null })
  })

  it('has no reward where a part has none', async () => {
    const grade = await graded(weighted({ number: [numeric(), 1], short: [short, 1] }), '4', 'four')
    expect(grade).toMatchObject({
      reward: null,
      parts: { short: { value: 1, weight: 1 } },
      feedback: 'number: numeric: the task has no ground truth that is a number',
    })
  })

  it('takes graders of your own, and of others', async () => {
    const inner = weighted({ exact: [exactMatch(), 1], equals: [equals, 1] })
    const outer = weighted({ inner: [inner, 3], length: [short, 1] })
    expect(await graded(outer, '5', '5')).toMatchObject({ parts: { inner: { value: 1, weight: 3 } } })
  })

  it('names the part that is no grader, or returns no grade', async () => {
    expect(() => weighted({})).toThrow(expect.objectContaining({ code: 'GRADER_INVALID' }))
    expect(() => weighted({ a: [exactMatch(), Number.NaN] })).toThrow(/weight of part 'a' must be a number above 0/)
    expect(() => weighted({ a: [exactMatch(), -1] })).toThrow(/weight of part 'a'/)
    expect(() => weighted({ a: exactMatch() as never })).toThrow(/part 'a' must be \[grader, weight\]/)
    const broken = weighted({ a: [() => 'good' as never, 1] })
    await expect(graded(broken, 1, 1)).rejects.toThrow(/part 'a' of weighted' returned string/)
  })

  it('is called by its parts, or as it is told', () => {
    expect(weighted({ a: [exactMatch(), 0.8], b: [short, 0.2] }).name).toBe('weighted(a 0.8, b 0.2)')
    expect(weighted({ a: [exactMatch(), 1] }, { name: 'rubric' }).name).toBe('rubric')
    expect(weighted({ a: [exactMatch(), 1] }).name).toBe('weighted')
  })

  it('differs in its hash where its parts do', () => {
    const hashes = [
      weighted({ a: [exactMatch(), 1] }),
      weighted({ a: [exactMatch(), 2] }),
      weighted({ a: [exactMatch({ trim: false }), 1] }),
      weighted({ a: [short, 1] }),
      weighted({ a: [() => 1, 1] }),
    ].map(({ sha256 }) => sha256)
    expect(new Set(hashes).size).toBe(5)
  })

  it('is for evaluation only if a part of it is, and wants to see steps if a part does', () => {
    expect(weighted({ a: [includes(), 0.5], b: [exactMatch(), 0.5] }).evaluationOnly).toBe(true)
    expect(weighted({ a: [includes(), 0.5], b: [short, 0.5] }).evaluationOnly).toBe(true)
    expect(weighted({ a: [looks, 1] }).trajectory).toBe(true)
    expect(weighted({ a: [short, 1] }).trajectory).toBe(false)
  })
})

describe('every ready-made grader', () => {
  const graders: readonly Grader[] = [
    exactMatch({ ignoreCase: true }),
    numeric({ relative: 0.01, last: true }),
    regex(/^a+$/i),
    json({ ignoreExtra: true }),
    gaiaMatch(),
    includes(),
    weighted({ correct: [exactMatch(), 0.8], close: [weighted({ x: [numeric({ absolute: 1 }), 1] }), 0.2] }),
  ]

  it.each(graders)('is plain data: $name', async (grader) => {
    const again = JSON.parse(JSON.stringify(grader)) as Grader
    expect(again).toEqual(grader)
    for (const [answer, truth] of [
      ['A', 'a'],
      ['5', '5'],
      ['{"a":1}', '{}'],
      ['x', 'y'],
    ])
      expect(await graded(again, answer, truth)).toEqual(await graded(grader, answer, truth))
  })

  it.each(graders)('gives no reward without a ground truth, instead of a made-up zero: $name', async (grader) => {
    if (grader.name === 'regex') return
    expect(await graded(grader, '1', undefined)).toMatchObject({ reward: null, feedback: expect.any(String) })
  })

  it.each(graders)('grades whatever an agent may answer: $name', (grader) =>
    fc.assert(
      fc.asyncProperty(
        fc.anything({ withBigInt: true, withDate: true, withMap: true }),
        fc.string(),
        async (answer, truth) => {
          const grade = await graded(grader, answer, truth)
          expect(grade.feedback?.length ?? 0).toBeLessThan(5000)
        },
      ),
      { numRuns: 300 },
    ),
  )

  it('refuses options that it does not have', () => {
    expect(() => exactMatch({ ignorecase: true } as never)).toThrow(
      'exactMatch: unknown option \'ignorecase\'; did you mean "ignoreCase"?; allowed: trim, ignoreCase, oneOf',
    )
    expect(() => numeric({ relative: -1 })).toThrow(/`relative` must be a number of at least 0/)
    expect(() => json({ name: 'x', schema: {} as never })).toThrow(/Standard Schema/)
  })
})

it('text of others takes time that grows with its length, and no faster', async () => {
  const pieces = [
    '1',
    '9,',
    '1,111',
    '.1',
    ' 1',
    '1 111',
    'e',
    '1e',
    '-',
    '$',
    '%',
    '_1',
    ';',
    '"',
    '[',
    '{"a":',
    '`',
    '\n',
    'a ',
    '\u00a01',
  ]
  const graders = [numeric(), numeric({ last: true }), gaiaMatch(), json(), exactMatch(), includes()]
  for (const grader of graders)
    for (const piece of pieces) {
      const took = async (length: number) => {
        const text = piece.repeat(length / piece.length)
        let best = Number.POSITIVE_INFINITY
        for (let i = 0; i < 3; i++) {
          const began = cpuMs()
          await graded(grader, text, grader.name === 'numeric' ? '5' : `${text}x`)
          best = Math.min(best, cpuMs() - began)
        }
        return best
      }
      expect(await took(80_000), `${grader.name} on ${JSON.stringify(piece)}`).toBeLessThan(
        500 + 40 * (await took(10_000)),
      )
    }
})
