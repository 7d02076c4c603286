import { hash } from 'node:crypto'

/** All that a random stream depends on: not on attempt, worker, engine, version or time. */
export interface RandomKey {
  /** Of the run. */
  readonly seed: number | string
  /** What the numbers are drawn for: a run, or a part of a training that must not repeat another's. */
  readonly purpose: string
  /** The name of the stream; `''` is that of `ctx.random`. */
  readonly stream: string
  /** The id of the task, without its rollout. */
  readonly task: string
  /** How often a training has come to this task before. */
  readonly visit: number
  /** From 1. */
  readonly rollout: number
}

/** The key as a text. JSON, so that no two keys have the same text, whatever is in their names. */
export const randomKey = ({ seed, purpose, stream, task, visit, rollout }: RandomKey): string =>
  JSON.stringify(['manyworlds.random.1', seed, purpose, stream, task, visit, rollout])

/**
 * The stream of a key: numbers in [0, 1) with 53 random bits, from xoshiro128** with the first 128 bits of the key's
 * SHA-256 as its state. Not for secrets.
 */
export function randomFrom(key: RandomKey): () => number {
  const bytes = hash('sha256', randomKey(key), 'buffer')
  const next = xoshiro128([0, 4, 8, 12].map((at) => bytes.readUInt32LE(at)) as State)
  // Two draws: the generator has 32 bits each.
  return () => ((next() >>> 5) * 2 ** 26 + (next() >>> 6)) / 2 ** 53
}

/** A run-time check, for programs without type checking. */
export function checkStreamName(name: unknown): asserts name is string {
  if (typeof name !== 'string')
    throw new TypeError(`ctx.randomStream() takes the name of a stream, such as 'latency'; it was given ${typeof name}`)
}

type State = [number, number, number, number]

/** xoshiro128** 1.1 of Blackman and Vigna: whole numbers of 32 bits. */
export function xoshiro128([a, b, c, d]: Readonly<State>): () => number {
  // The all-zero state, which the generator cannot leave.
  if ((a | b | c | d) === 0) d = 1
  return () => {
    const fives = Math.imul(b, 5)
    const result = Math.imul((fives << 7) | (fives >>> 25), 9)
    const shifted = b << 9
    c ^= a
    d ^= b
    b ^= c
    a ^= d
    c ^= shifted
    d = (d << 11) | (d >>> 21)
    return result >>> 0
  }
}

/** mulberry32: for test plans, which are identified by a small seed. */
export function seeded(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
}
