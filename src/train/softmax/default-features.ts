import { log } from '../exact-math.ts'
import type { FeatureList } from './feature-list.ts'
import { hashPair, hashText } from './hash.ts'

/**
 * The features of policies without custom ones.
 *
 * The observation and the candidate are traversed leaf by leaf, each with its path (`text`, `calls[0]`, `position.x`):
 * - a string gives its words in lower case: `text:apples`;
 * - a number gives its value, compressed to sign(x)·log(1 + |x|): `position.x`; a whole number also gives `position.x=3`;
 * - true, false and null give `door.open=true`;
 * - a list gives its length and its elements: `calls.length=2`.
 *
 * A candidate then has these features, each scaled by 1/√n if there are n of them, so that the length of a text does not affect the speed of learning:
 * - each of its own;
 * - each pair of a feature of the observation and one of its own: `text:sum × :add`;
 * - for each of its words that a string of the observation contains: the path of that string, and the path with the position of the word in it.
 *
 * The first 256 of the observation and the first 64 of a candidate are used. For more, write custom features.
 */
export const DEFAULT_FEATURES = 'default.1'

const MAX_OF_OBSERVATION = 256
const MAX_OF_CANDIDATE = 64
const MAX_DEPTH = 16

/** The features of an observation or a candidate. */
export class Reading {
  readonly hashes: number[] = []
  readonly values: number[] = []
  readonly words: { readonly path: number; readonly word: string; readonly place: number }[] = []
  readonly #max: number

  constructor(value: unknown, max: number) {
    this.#max = max
    this.#read(value, hashText(''), 0)
  }

  static ofObservation(observation: unknown): Reading {
    return new Reading(observation, MAX_OF_OBSERVATION)
  }

  #add(hash: number, value: number): boolean {
    if (this.hashes.length >= this.#max) return false
    this.hashes.push(hash)
    this.values.push(value)
    return true
  }

  #read(value: unknown, path: number, depth: number): void {
    if (value === undefined || this.hashes.length >= this.#max) return
    if (typeof value === 'string') return this.#readText(value, path)
    if (typeof value === 'number' || typeof value === 'bigint') return this.#readNumber(Number(value), path)
    if (typeof value !== 'object' || value === null) return void this.#add(hashText(`=${String(value)}`, path), 1)
    if (depth === MAX_DEPTH) return
    if (Array.isArray(value) || ArrayBuffer.isView(value)) {
      const list = value as ArrayLike<unknown>
      this.#add(hashText(`.length=${list.length}`, path), 1)
      for (let i = 0; i < list.length && this.hashes.length < this.#max; i++)
        this.#read(list[i], hashText(`[${i}]`, path), depth + 1)
    }
    // Sorted, because the order in which an object was built has no meaning.
    else
      for (const key of Object.keys(value).sort())
        this.#read((value as Record<string, unknown>)[key], hashText(`.${key}`, path), depth + 1)
  }

  #readNumber(value: number, path: number): void {
    if (Number.isInteger(value)) this.#add(hashText(`=${value}`, path), 1)
    if (value !== 0 && Number.isFinite(value)) this.#add(path, value > 0 ? log(1 + value) : -log(1 - value))
  }

  #readText(text: string, path: number): void {
    let place = 0
    for (const [word] of text.matchAll(/[\p{L}\p{N}]+/gu)) {
      const small = word.toLowerCase()
      if (!this.#add(hashText(`:${small}`, path), 1)) return
      this.words.push({ path, word: small, place: place++ })
    }
  }
}

const MATCH = hashText('match')
const MATCH_AT = hashText('match at')

/** Adds the features of a candidate. */
export function addDefaultFeatures(list: FeatureList, observation: Reading, candidate: unknown): void {
  const own = new Reading(candidate, MAX_OF_CANDIDATE)
  const begin = list.length
  for (const [i, hash] of own.hashes.entries()) {
    const value = own.values[i]!
    list.add(hash, value)
    for (let j = 0; j < observation.hashes.length; j++)
      list.add(hashPair(observation.hashes[j]!, hash), observation.values[j]! * value)
  }
  for (const { word } of own.words)
    for (const seen of observation.words) {
      if (seen.word !== word) continue
      list.add(hashPair(seen.path, MATCH), 1)
      list.add(hashPair(hashPair(seen.path, MATCH_AT), seen.place), 1)
    }
  list.scale(begin)
}

/** Adds the features of the value head: those of the observation. */
export function addObservation(list: FeatureList, observation: unknown): void {
  const { hashes, values } = Reading.ofObservation(observation)
  const begin = list.length
  list.add(hashText('bias'), 1)
  for (const [i, hash] of hashes.entries()) list.add(hash, values[i]!)
  list.scale(begin)
}
