import { defineAgent } from 'manyworlds'

/** An array with one item in so many places, as an id that is used as an index makes it. */
export function sparse(last: number): unknown[] {
  const places: unknown[] = []
  places[last] = 1
  return places
}

function nested(levels: number): unknown {
  let value: unknown = 'the end'
  for (let level = 0; level < levels; level++) value = [value]
  return value
}

/** Values that are a trial for whoever sends, stores or shows them. */
export const HUGE = {
  'a sparse array': () => sparse(4e9),
  'a sparse array of the greatest length': () => sparse(2 ** 32 - 2),
  'a sparse array inside': () => ({ pages: [{ scores: sparse(4e9) }] }),
  'sparse arrays that are too large together': () => Array.from({ length: 20 }, () => sparse(100_000)),
  'a sparse array that a list would hold': () => sparse(2e7),
  'an array with a few empty places': () => sparse(1000),
  'a long list that JSON has no form for': () => Array.from({ length: 1e6 }, () => Number.NaN),
  'a long list of numbers': () => Array.from({ length: 1e6 }, () => 7),
  'a value nested too deep': () => nested(100_000),
  'a value nested deep': () => nested(900),
  'a long text': () => 'ab\n'.repeat(3e6),
  'a large Map': () => new Map(Array.from({ length: 5e4 }, (_, i) => [{ i }, i])),
  'a large Set': () => new Set(Array.from({ length: 5e4 }, (_, i) => ({ i }))),
  'an object of many fields': () => Object.fromEntries(Array.from({ length: 5e4 }, (_, i) => [`field ${i}`, -0])),
  'many bytes': () => new Float64Array(2e6),
  'a bigint of many digits': () => 10n ** 19_000n,
} as const

export type Huge = keyof typeof HUGE

const answersHuge = defineAgent({ name: 'answers-huge', run: async (what: Huge) => HUGE[what]() })

/** Gives such a value away, by one of the ways that lead out of a task. */
export const huge = defineAgent({
  name: 'huge',
  run: async (
    { what, how }: { what: Huge; how: 'answer' | 'step' | 'throw' | 'message' | 'cause' | 'log' | 'subtask' },
    ctx,
  ) => {
    switch (how) {
      case 'answer':
        return HUGE[what]()
      case 'step':
        ctx.step({ observation: HUGE[what]() })
        return 'recorded'
      case 'throw':
        throw HUGE[what]()
      case 'message':
        throw new Error('y'.repeat(33 * 1024 * 1024))
      case 'cause':
        throw new Error('it failed', { cause: HUGE[what]() })
      case 'log':
        ctx.log(HUGE[what]())
        console.log(HUGE[what]())
        return 'printed'
      case 'subtask': {
        const { success, error } = await ctx.runTask(answersHuge.task(what))
        return { success, message: error?.message }
      }
    }
  },
})
