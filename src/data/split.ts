import { hash } from 'node:crypto'
import { DataSet } from './data-set.ts'
import { checkOptions, invalid, type Rules } from './options.ts'
import { normalizeQuestion, questionOf } from './question.ts'

export type SplitName = 'train' | 'validation' | 'test'

/** The share of each part. The shares must add up to 1; one that is left out is 0. */
export interface SplitShares {
  readonly train?: number
  readonly validation?: number
  readonly test?: number
  /** Another seed gives another division. Default 0. */
  readonly seed?: number
}

export interface SplitOptions<T> extends SplitShares {
  /** Returns the question of an item; items with the same question go to the same part. Default for texts and tasks: the text or the input. */
  readonly key?: (item: T) => string
}

export type Items<T> = Iterable<T> | AsyncIterable<T>

const share = { test: (value: unknown) => typeof value === 'number' && value >= 0 && value <= 1, must: 'from 0 to 1' }
const SHARES: Rules = {
  train: share,
  validation: share,
  test: share,
  seed: { test: Number.isSafeInteger, must: 'a whole number' },
}
const RULES: Rules = { ...SHARES, key: { test: (value) => typeof value === 'function', must: 'a function' } }
/** .8 + .1 + .1 is not exactly 1 in binary. */
const ROUNDING = 1e-9

/**
 * Divides data by question: the same question is always in the same part, however often it occurs, in whatever order, and
 * whatever is added later. Each part reads the data again when it is iterated, and leaves out the items of the other parts.
 *
 * @example
 * const { train, test } = split(fromJsonl('questions.jsonl', toTask), { train: 0.9, test: 0.1 })
 */
export function split<T extends string | { readonly agent: unknown; readonly input: unknown }>(
  items: Items<T>,
  options: SplitOptions<T>,
): Record<SplitName, AsyncIterable<T>>
export function split<T>(
  items: Items<T>,
  options: SplitOptions<T> & { readonly key: (item: T) => string },
): Record<SplitName, AsyncIterable<T>>
export function split<T>(items: Items<T>, options: SplitOptions<T>): Record<SplitName, AsyncIterable<T>> {
  const { key, ...shares } = options
  checkOptions('split', options, RULES)
  checkSum(shares)
  refuseOnce(items)
  const keyOf = key ? (item: T) => normalizeQuestion(checkedKey(key(item))) : questionOf
  const part = (name: SplitName): AsyncIterable<T> => ({
    async *[Symbol.asyncIterator]() {
      for await (const item of items) if (placed(keyOf(item), shares) === name) yield item
    },
  })
  return { train: part('train'), validation: part('validation'), test: part('test') }
}

/** The part that `split` assigns a question to. */
export function splitOf(question: string, shares: SplitShares): SplitName {
  checkOptions('splitOf', shares, SHARES)
  checkSum(shares)
  return placed(normalizeQuestion(question), shares)
}

/** The order from 0 to 1 is train, validation, test. If one share changes, only items next to a moved border change their part. */
function placed(key: string, { validation = 0, test = 0, seed = 0 }: SplitShares): SplitName {
  const digest = hash('sha256', `split\0${seed}\0${key}`, 'buffer')
  const at = digest.readUIntBE(0, 6) / 2 ** 48
  if (at >= 1 - test) return 'test'
  return at >= 1 - test - validation ? 'validation' : 'train'
}

function checkSum({ train = 0, validation = 0, test = 0 }: SplitShares): void {
  const sum = train + validation + test
  if (Math.abs(sum - 1) > ROUNDING)
    throw invalid(`split: train, validation and test must add up to 1, they add up to ${Number(sum.toFixed(9))}`)
}

function checkedKey(key: unknown): string {
  if (typeof key === 'string') return key
  throw invalid(`split: \`key\` must return a text, it returned ${key === null ? 'null' : typeof key}`)
}

/** Throws for generators and streams: each part reads the data from the beginning. */
function refuseOnce(items: unknown): void {
  const once =
    items instanceof DataSet
      ? items.isOnce
      : typeof items === 'object' && items !== null && 'next' in items && typeof items.next === 'function'
  if (once)
    throw invalid(
      'split: a stream or generator can be read only once, but each part reads the data again; give an array or a data set of a file',
    )
}
