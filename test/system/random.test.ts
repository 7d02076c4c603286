import { Runners } from 'manyworlds'
import { afterAll, describe, expect, test } from 'vitest'
import { type RandomKey, randomFrom, randomKey, xoshiro128 } from '../../src/random.ts'
import { drawer, misnamer } from '../agents/random.ts'

afterAll(() => Runners.shutdown())
const take = (count: number, draw: () => number) => Array.from({ length: count }, draw)
const KEY: RandomKey = { seed: 0, purpose: 'run', stream: '', task: '#1', visit: 0, rollout: 1 }

describe('the generator', () => {
  test('gives what the reference implementation of xoshiro128** 1.1 gives', () => {
    expect(take(10, xoshiro128([1, 2, 3, 4]))).toEqual([
      11520, 0, 5927040, 70819200, 2031721883, 1637235492, 1287239034, 3734860849, 3729100597, 4258142804,
    ])
    expect(take(6, xoshiro128([2654435769, 608135816, 3084996962, 3735928559]))).toEqual([
      2463954730, 5524658, 74256371, 1905451993, 3123413897, 314453775,
    ])
  })

  test('leaves the state of zeros', () => {
    expect(new Set(take(20, xoshiro128([0, 0, 0, 0]))).size).toBeGreaterThan(15)
  })

  // Computed by another program, in Python: these numbers are a promise.
  test.each([
    [{}, [0.12309302442590253, 0.49902694094455025, 0.004332483879749605]],
    [
      { seed: 7, stream: 'latency', task: 'q7', rollout: 2 },
      [0.12315673480387168, 0.367505147128956, 0.3588266953909174],
    ],
    [{ seed: 3, stream: 'soon\0', task: 't' }, [0.8694664457211887, 0.4358505339174069, 0.28338923989136755]],
  ])('draws the numbers that it has always drawn: %j', (key, numbers) => {
    expect(take(3, randomFrom({ ...KEY, ...key }))).toEqual(numbers)
  })

  test('no part of a key can be taken for another', () => {
    const keys: Partial<RandomKey>[] = [
      {},
      { seed: 1 },
      { seed: '0' },
      { purpose: 'evaluate' },
      { stream: 'a' },
      { stream: 'a","b' },
      { stream: '","#1' },
      { task: '#2' },
      { visit: 1 },
      { rollout: 2 },
      { visit: 1, rollout: 0 },
    ]
    const texts = keys.map((key) => randomKey({ ...KEY, ...key }))
    expect(new Set(texts).size).toBe(keys.length)
  })
})

describe('25,600 streams of 60 draws: 3,200 tasks of 8 rollouts', () => {
  const DRAWS = 60
  const streams: Float64Array[] = []
  for (let task = 1; task <= 3200; task++)
    for (let rollout = 1; rollout <= 8; rollout++)
      streams.push(Float64Array.from(take(DRAWS, randomFrom({ ...KEY, task: `#${task}`, rollout }))))

  test('have no number, and so no window, in common', () => {
    const seen = new Set<number>()
    for (const stream of streams) for (const number of stream) seen.add(number)
    // Among so many numbers of 53 bits, two are expected to be equal once in 7,600 tries.
    expect(seen.size).toBe(streams.length * DRAWS)
  })

  test('fill [0, 1) evenly, down to their last bits', () => {
    const bins = new Uint32Array(1024)
    const lowBins = new Uint32Array(1024)
    for (const stream of streams)
      for (const number of stream) {
        bins[Math.floor(number * 1024)]!++
        lowBins[(number * 2 ** 53) % 1024]!++
      }
    const expected = (streams.length * DRAWS) / 1024
    const chiSquare = (counts: Uint32Array) =>
      counts.reduce((sum, count) => sum + (count - expected) ** 2 / expected, 0)
    // 1,023 degrees of freedom: a right generator is outside of this once in 10,000 tries.
    for (const counts of [bins, lowBins]) {
      expect(chiSquare(counts)).toBeGreaterThan(860)
      expect(chiSquare(counts)).toBeLessThan(1200)
    }
  })

  test('do not move together, between rollouts or between tasks', () => {
    const correlation = (apart: number) => {
      let sum = 0
      for (let i = 0; i + apart < streams.length; i++)
        for (let draw = 0; draw < DRAWS; draw++) sum += (streams[i]![draw]! - 0.5) * (streams[i + apart]![draw]! - 0.5)
      return (12 * sum) / ((streams.length - apart) * DRAWS)
    }
    // A standard deviation is .0008.
    for (const apart of [1, 7, 8, 16]) expect(Math.abs(correlation(apart)), `${apart} apart`).toBeLessThan(0.004)
  })
})

describe('a task', () => {
  const draw = async (input: { noisy?: boolean; fails?: number } = {}, config: object = {}) =>
    (await Runners.runTask(drawer.task(input, { id: 't' }), { seed: 5, backoffMs: 1, ...config })).answer!

  test('draws from its own stream and from named ones, and each goes on where it was', async () => {
    const { numbers, choice, goesOn } = await draw()
    expect(numbers).toEqual(take(2, randomFrom({ ...KEY, seed: 5, task: 't' })))
    expect(choice).toEqual(take(2, randomFrom({ ...KEY, seed: 5, task: 't', stream: 'choice' })))
    expect(goesOn).toBe(true)
  })

  test('draws the same from a stream, whatever is drawn from others', async () => {
    expect(await draw({ noisy: true })).toEqual(await draw())
  })

  test('draws the same again when it is tried again, in another worker and another run', async () => {
    expect(await draw({ fails: 2 }, { maxAttempts: 3, workerNum: 2, runId: 'other' })).toEqual(await draw())
  })

  test('is told what a name of a stream is', async () => {
    const { error } = await Runners.runTask(misnamer.task(7))
    expect(error?.message).toBe("ctx.randomStream() takes the name of a stream, such as 'latency'; it was given number")
  })
})
