import fc from 'fast-check'
import { expect } from 'vitest'

const STEP = 1e-5
/** How far a derivative may be from the finite difference, of the larger of 1 and itself. */
const TOLERANCE = 1e-6

/** Fails unless `derivative` is the slope of `f` at `x`, by central differences. */
export function expectSlope(f: (x: number) => number, x: number, derivative: number): void {
  const difference = (f(x + STEP) - f(x - STEP)) / (2 * STEP)
  expect(Math.abs(derivative - difference), `${derivative} is not the slope ${difference}`).toBeLessThan(
    TOLERANCE * Math.max(1, Math.abs(difference)),
  )
}

/** The same for each of many numbers. */
export function expectGradient(
  f: (x: Float64Array) => number,
  x: ArrayLike<number>,
  gradient: ArrayLike<number>,
): void {
  expect(gradient.length).toBe(x.length)
  for (let i = 0; i < x.length; i++)
    expectSlope((at) => f(Float64Array.from(x).fill(at, i, i + 1)), x[i]!, gradient[i]!)
}

/** Whether `x` is so far from each kink that a step does not cross it. */
export const isSmooth = (x: number, kinks: readonly number[]): boolean =>
  kinks.every((kink) => Math.abs(x - kink) > 10 * STEP)

export const numbers = (limit: number) => fc.double({ min: -limit, max: limit, noNaN: true })
export const logProbs = fc.double({ min: -4, max: -0.01, noNaN: true })

/** Fails unless each number is within `error` of the expected one. */
export function expectNear(actual: ArrayLike<number>, expected: readonly number[], error = 1e-12): void {
  expect(actual.length).toBe(expected.length)
  for (const [i, value] of expected.entries())
    expect(Math.abs(actual[i]! - value), `${actual[i]} is not ${value}`).toBeLessThanOrEqual(
      error * Math.max(1, Math.abs(value)),
    )
}

export const sumOf = (values: ArrayLike<number>): number => Array.from(values).reduce((a, b) => a + b, 0)
