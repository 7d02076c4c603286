import { automaticId } from '../task.ts'
import { checkOptions, invalid, type Rules } from './options.ts'
import { Sampler } from './sampler.ts'

export interface SampleOptions {
  /** How many items, at most. */
  readonly limit: number
  /** Another seed gives another sample. Default 0. */
  readonly seed?: number
}

const RULES: Rules = {
  limit: {
    test: (value) => Number.isSafeInteger(value) && (value as number) >= 1,
    must: 'a whole number of at least 1',
  },
  seed: { test: Number.isSafeInteger, must: 'a whole number' },
}

/**
 * Some of many items, each as likely as any other, in the order in which they stand. It reads all of them before it gives the
 * first, and holds no more than twice `limit`. The same seed gives the same sample: by the ids of tasks, or else by place.
 * A larger `limit` adds items, and takes none away.
 *
 * @example
 * for await (const row of sample(fromJsonl('questions.jsonl'), { limit: 50, seed: 1 })) console.log(row)
 */
export function sample<T>(items: Iterable<T> | AsyncIterable<T>, options: SampleOptions): AsyncIterable<T> {
  checkOptions('sample', options, RULES)
  if (options.limit === undefined) throw invalid('sample: `limit` is missing: how many items, at most')
  const { limit, seed = 0 } = options
  return {
    async *[Symbol.asyncIterator]() {
      const sampler = new Sampler<T>(limit, seed)
      let index = 0
      for await (const item of items) {
        sampler.offer(idOf(item) ?? automaticId(index), item)
        index++
      }
      yield* sampler.chosen()
    },
  }
}

/** Of a task that has one. */
function idOf(item: unknown): string | undefined {
  if (typeof item !== 'object' || item === null || !('agent' in item) || !('id' in item)) return undefined
  return typeof item.id === 'string' ? item.id : undefined
}
