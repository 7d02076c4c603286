import { expect, test } from 'vitest'
import { countIn, histogramOf, rangeOf } from '../../web/src/run/histogram.ts'

const rowsOf = (values: readonly number[]) => Uint32Array.from(values.keys())
const histogram = (values: readonly number[]) => histogramOf(Float64Array.from(values), rowsOf(values))!

test('every value is in the bin whose range contains it', () => {
  for (const values of [
    [0, 1, 1, 0.5],
    [-3, 7, 12.5, 12.5],
    [0, 0.2, 3, 5, 8, 4000, 90_000],
    [212, 212],
    [0, 0],
    [1e-9, 5e-9, 2e-3],
  ]) {
    const found = histogram(values)
    expect(found.counts.reduce((sum, count) => sum + count, 0)).toBe(values.length)
    for (const [bin, count] of found.counts.entries()) {
      const { low, high } = rangeOf(found, bin)
      expect(values.filter((value) => value >= low && value < high)).toHaveLength(count)
    }
  }
})

test('bins grow with the values if a few are far above the others', () => {
  expect(histogram([1, 2, 2, 3, 1000]).isLog).toBe(true)
  expect(histogram([1, 2, 3, 4, 5]).isLog).toBe(false)
  expect(histogram([-1, 2, 2, 3, 1000]).isLog).toBe(false)
})

test('there are neither too few nor too many bins', () => {
  for (const values of [
    [0, 1],
    [3, 999_983],
    [0.001, 0.002, 1e7],
    [1e-7, 1e-7, 1e9],
  ]) {
    const { length } = histogram(values).counts
    expect(length).toBeGreaterThan(5)
    expect(length).toBeLessThan(100)
  }
})

test('values that are missing are not counted', () => {
  expect(histogramOf(Float64Array.of(Number.NaN), rowsOf([0]))).toBeUndefined()
  expect([...countIn([0, 1, 2], Float64Array.of(0.5, Number.NaN, 1), rowsOf([0, 0, 0]))]).toEqual([1, 1])
})
