import fc from 'fast-check'
import { defineAgent } from 'manyworlds'
import { fromJsonl, normalizeQuestion, type SplitName, sample, split, splitOf } from 'manyworlds/data'
import { describe, expect, it } from 'vitest'
import { dataFile, pieces, toArray } from './files.ts'

const echo = defineAgent({ name: 'echo', module: import.meta.url, run: (input: unknown) => input })
const THIRDS = { train: 0.4, validation: 0.3, test: 0.3 }
const NAMES = ['train', 'validation', 'test'] as const

async function parts<T>(made: Record<SplitName, AsyncIterable<T>>): Promise<Record<SplitName, T[]>> {
  const [train, validation, test] = await Promise.all(NAMES.map((name) => toArray(made[name])))
  return { train: train!, validation: validation!, test: test! }
}

/** The same question as somebody else might write it. */
const rewritten = (text: string, how: number) =>
  [
    text,
    `  ${text}\n`,
    text.toUpperCase(),
    text.toLowerCase(),
    text.normalize('NFD'),
    text.replaceAll(' ', '\u00a0\t '),
    text.split('').join('\u200b'),
  ][how % 7]!

const questions = fc.array(fc.string({ unit: fc.constantFrom(...'abcdé ?ßΣ½ﬁ'), maxLength: 12 }), { maxLength: 40 })

describe('split', () => {
  it('gives each item to exactly one part, and keeps their order', async () => {
    await fc.assert(
      fc.asyncProperty(questions, fc.integer(), async (list, seed) => {
        const made = await parts(split(list, { ...THIRDS, seed }))
        const all = NAMES.flatMap((name) => made[name])
        expect(all.toSorted()).toEqual(list.toSorted())
        for (const name of NAMES) expect(made[name]).toEqual(list.filter((text) => made[name].includes(text)))
      }),
    )
  })

  it('never has the same question in two parts, however it is written, repeated, shuffled or added to', async () => {
    await fc.assert(
      fc.asyncProperty(questions, questions, fc.array(fc.nat()), async (list, more, ways) => {
        const again = [...list, ...list, ...more].map((text, place) => rewritten(text, ways[place % ways.length] ?? 0))
        const first = await parts(split(list, THIRDS))
        const second = await parts(split(again.toReversed(), THIRDS))
        for (const name of NAMES)
          for (const other of NAMES)
            if (other !== name) {
              const known = new Set(first[name].map(normalizeQuestion))
              expect(second[other].filter((text) => known.has(normalizeQuestion(text)))).toEqual([])
            }
      }),
    )
  })

  it('has the promised shares, and other parts with another seed', async () => {
    const list = Array.from({ length: 20_000 }, (_, n) => `question ${n}`)
    const made = await parts(split(list, { train: 0.8, validation: 0.1, test: 0.1 }))
    // Five standard deviations of a binomial count.
    expect(Math.abs(made.train.length - 16_000)).toBeLessThan(5 * Math.sqrt(20_000 * 0.16))
    expect(Math.abs(made.test.length - 2000)).toBeLessThan(5 * Math.sqrt(20_000 * 0.09))
    const other = await parts(split(list, { train: 0.8, validation: 0.1, test: 0.1, seed: 1 }))
    const inBoth = other.test.filter((text) => made.test.includes(text)).length
    expect(inBoth).toBeGreaterThan(100)
    expect(inBoth).toBeLessThan(320)
  })

  it('is the same on every machine and in every version', () => {
    const shares = { train: 0.8, validation: 0.1, test: 0.1 }
    const placed = Array.from({ length: 12 }, (_, n) => splitOf(`What is ${n} + ${n}?`, shares).slice(0, 2)).join(' ')
    expect(placed).toBe('tr va tr va tr tr tr va tr va tr tr')
    expect(splitOf('  WHAT is\n3 + 3？', shares)).toBe(splitOf('What is 3 + 3?', shares))
  })

  it('keeps the test part when only the others change', async () => {
    const list = Array.from({ length: 500 }, (_, n) => `question ${n}`)
    const one = await parts(split(list, { train: 0.8, validation: 0.1, test: 0.1 }))
    const two = await parts(split(list, { train: 0.9, test: 0.1 }))
    expect(two.test).toEqual(one.test)
    expect(two.validation).toEqual([])
  })

  it('knows tasks by their input, whatever else they have, and rows by a key', async () => {
    const tasks = Array.from({ length: 60 }, (_, n) => echo.task({ b: `Q ${n % 20} `, a: n % 20 }, { id: `t${n}` }))
    const turned = tasks.map(({ input, id }) => ({
      ...echo.task({ a: (input as { a: number }).a, b: `q ${(input as { a: number }).a}` }),
      id,
    }))
    const [one, two] = [await parts(split(tasks, THIRDS)), await parts(split(turned, THIRDS))]
    for (const name of NAMES) expect(two[name].map(({ id }) => id)).toEqual(one[name].map(({ id }) => id))
    expect(one.train.length % 3).toBe(0)
    const rows = fromJsonl<{ q: string }>(dataFile('rows.jsonl', '{"q":"a"}\n{"q":" A"}\n{"q":"b"}\n'))
    const byKey = await parts(split(rows, { train: 0.5, test: 0.5, key: (row) => row.q }))
    expect(NAMES.some((name) => byKey[name].filter(({ q }) => q !== 'b').length === 2)).toBe(true)
  })

  it('refuses what it cannot divide', async () => {
    expect(() => split(['a'], { train: 0.8 })).toThrow(/must add up to 1, they add up to 0.8/)
    expect(() => split(['a'], { train: 1.5, test: -0.5 })).toThrow(/`train` must be from 0 to 1/)
    expect(() => split(['a'], { train: 1, tests: 0 } as object)).toThrow(/did you mean 'test'\?/)
    expect(() => split(fromJsonl<string>(pieces('"a"\n', [9])), { train: 1 })).toThrow(/can be read only once/)
    const generated = (function* () {
      yield 'a'
    })()
    expect(() => split(generated, { train: 1 })).toThrow(/can be read only once/)
    const rows = split([{ q: 'a' }] as unknown as string[], { train: 1 })
    await expect(toArray(rows.train)).rejects.toThrow(/`key` is required/)
    const numbers = split(['a'], { train: 1, key: (() => 1) as unknown as () => string })
    await expect(toArray(numbers.train)).rejects.toThrow(/`key` must return a text, it returned number/)
  })
})

describe('normalizeQuestion', () => {
  it('says of a normalized question that it is one', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        const once = normalizeQuestion(text)
        expect(normalizeQuestion(once)).toBe(once)
      }),
      { numRuns: 1000 },
    )
    for (const [from, to] of [
      [0, 0x20000],
      [0x2f800, 0x2fa20],
      [0xe0000, 0xe1000],
    ] as const)
      for (let code = from; code < to; code++) {
        const once = normalizeQuestion(`a${String.fromCodePoint(code)}b`)
        if (normalizeQuestion(once) !== once) throw new Error(`U+${code.toString(16)}`)
      }
  })
})

describe('sample', () => {
  const numbers = Array.from({ length: 1000 }, (_, n) => n)

  it('takes so many, in their order, the same ones each time', async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(300), fc.integer({ min: 1, max: 350 }), fc.integer(), async (size, limit, seed) => {
        const list = numbers.slice(0, size)
        const taken = await toArray(sample(list, { limit, seed }))
        expect(taken).toHaveLength(Math.min(size, limit))
        expect(taken).toEqual([...new Set(taken)].toSorted((a, b) => a - b))
        expect(await toArray(sample(list, { limit, seed }))).toEqual(taken)
        const larger = await toArray(sample(list, { limit: limit + 7, seed }))
        expect(taken.filter((item) => !larger.includes(item))).toEqual([])
      }),
    )
  })

  it('takes each as often as any other', async () => {
    const counts = new Array<number>(50).fill(0)
    const seeds = 2000
    for (let seed = 0; seed < seeds; seed++)
      for await (const item of sample(numbers.slice(0, 50), { limit: 10, seed })) counts[item]!++
    // Each is taken 400 times of 2,000, give or take; a chi-squared of 49 degrees of freedom is above 99 once in 30,000.
    const chi = counts.reduce((sum, times) => sum + (times - 400) ** 2 / (400 * 0.8), 0)
    expect(chi).toBeLessThan(99)
  })

  it('knows tasks by their ids, so that their order does not matter', async () => {
    const tasks = numbers.map((n) => echo.task(n, { id: `t${n}` }))
    const ids = async (list: typeof tasks) =>
      (await toArray(sample(list, { limit: 30, seed: 3 }))).map(({ id }) => id).toSorted()
    expect(await ids(tasks.toReversed())).toEqual(await ids(tasks))
  })

  it('refuses wrong options', () => {
    const call = (options: object) => () => sample([1], options as { limit: number })
    expect(call({})).toThrow(/`limit` is missing/)
    expect(call({ limit: 0 })).toThrow(/`limit` must be a whole number of at least 1, it is 0/)
    expect(call({ limit: 1, seed: 0.5 })).toThrow(/`seed` must be a whole number/)
  })
})
