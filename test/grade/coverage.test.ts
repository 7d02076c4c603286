import { type Interval, meanReward, successRate } from 'manyworlds/grade'
import { describe, expect, it } from 'vitest'
import { studentInterval } from '../../src/grade/mean-interval.ts'
import { drawTasks, type Population, populationsOf, randomOf } from './populations.ts'

/** A small version of `npm run bench:coverage`, with fixed seeds. */
const REPETITIONS = 400
const WANTED = 0.93

type Method = (tasks: readonly (readonly boolean[])[]) => Interval

function coverage(method: Method, population: Population, tasks: number, rollouts: number, seed: number): number {
  const random = randomOf(seed)
  let held = 0
  for (let i = 0; i < REPETITIONS; i++) {
    const { low, high } = method(drawTasks(population, tasks, rollouts, random))
    expect(high).toBeGreaterThan(low)
    if (low <= population.mean && population.mean <= high) held++
  }
  return held / REPETITIONS
}

describe.each([0.02, 0.5, 0.98])('for tasks that are solved with probability %d on average', (mean) => {
  it.each([1, 4, 8])('the interval holds the truth as often as it says, with %d rollouts', (rollouts) => {
    const populations = rollouts === 1 ? populationsOf(mean).slice(0, 1) : populationsOf(mean)
    for (const population of populations)
      for (const tasks of [10, 27, 100])
        expect(
          coverage((drawn) => successRate(drawn)!, population, tasks, rollouts, 1000 * tasks + rollouts),
          `${population.name}, ${tasks} tasks`,
        ).toBeGreaterThanOrEqual(WANTED)
  })
})

it('the simulation tells methods apart: Student’s interval does not hold it near the edge', () => {
  const student: Method = (drawn) => {
    const { low, high } = studentInterval(
      drawn.map((results) => results.filter(Boolean).length / results.length),
      0.95,
    )
    // Where all tasks end alike its width is zero, and the truth is elsewhere.
    return Number.isFinite(low) ? { low, high } : { low: 1, high: 1.1 }
  }
  const population = populationsOf(0.98)[2]!
  expect(coverage(student, population, 27, 4, 5)).toBeLessThan(0.9)
})

it('holds for rewards that are nearly always the same, with rare zeros', () => {
  const random = randomOf(77)
  const truth = 0.9 * 0.97
  let [held, student] = [0, 0]
  for (let i = 0; i < REPETITIONS; i++) {
    const rewards = Array.from({ length: 27 }, () => (random() < 0.03 ? 0 : 0.9))
    const { low, high } = meanReward(rewards.map((reward) => [reward]))!
    if (low <= truth && truth <= high) held++
    const other = studentInterval(rewards, 0.95)
    if (Number.isFinite(other.low) && other.low <= truth && truth <= other.high) student++
  }
  expect(held / REPETITIONS).toBeGreaterThanOrEqual(WANTED)
  expect(student / REPETITIONS).toBeLessThan(0.7)
})
