import { deepStrictEqual } from 'node:assert'

/** The names of the tasks, which every pool's worker has under these names. */
export type Workload = 'noop' | 'echo' | 'sleep'
/** What can be measured: the CPU time of a task for each workload, and how long the first answer takes. */
export const measures = ['noop', 'echo', 'sleep', 'cold'] as const
export type Measure = (typeof measures)[number]

export const workers = 2
/** Tasks that a worker may have at once. `sleep` needs many, or all that is measured is the waiting. */
export const inFlightPerWorker = 64

interface Input {
  readonly id: number
}

// Flat strings: those that `repeat` and `+` build would be flattened when they are first sent, inside the measurement.
const text = (length: number) => Buffer.alloc(length, 'x').toString('latin1')

const filler = text(180)

/** 10 KB as JSON, shaped like a page of search results. */
const records = Array.from({ length: 40 }, (_, i) => ({
  id: i,
  title: `Record number ${i}`,
  score: i / 7,
  done: i % 3 === 0,
  tags: ['alpha', 'beta', `tag-${i}`],
  source: { url: `https://example.com/records/${i}`, page: i },
  body: text(74),
}))

/** Inputs that differ in their id, which also tells whether an answer belongs to its input. */
export function inputsOf(workload: Workload, count: number): Input[] {
  const rest = workload === 'echo' ? { records } : { text: filler }
  return Array.from({ length: count }, (_, id) => ({ id, ...rest }))
}

/** Throws if this is not the answer to that input. */
export function check(workload: Workload, input: Input | undefined, answer: unknown): void {
  deepStrictEqual(answer, workload === 'echo' ? input : input?.id)
}
