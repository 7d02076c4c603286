import { automaticId } from '../task.ts'
import { checkOptions, invalid, type Rules } from './options.ts'
import { Sampler } from './sampler.ts'

export interface SampleOptions {
  /** The largest number of items. */
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
 * Selects some of many items, each with the same probability, in their original order. It reads all items before it returns the
 * first, and holds at most twice `limit`. The same seed gives the same sample: by the ids of tasks, or otherwise by position. A
 * larger `limit` adds items and removes none.
 *
 * @example
 * for await (const row of sample(fromJsonl('questions.jsonl'), { limit: 50, seed: 1 })) console.log(row)
 */
export function sample<T>(items: Iterable<T> | AsyncIterable<T>, options: SampleOptions): AsyncIterable<T> {
  checkOptions('sample', options, RULES)
  if (options.limit === undefined) throw invalid('sample: `limit` is missing; give the largest number of items')
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

/** The id of a task, if it has one. */
function idOf(item: unknown): string | undefined {
  if (typeof item !== 'object' || item === null || !('agent' in item) || !('id' in item)) return undefined
  return typeof item.id === 'string' ? item.id : undefined
}
