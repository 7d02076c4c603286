import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { clipScale, gradientNorm } from '../../src/train/gradient-norm.ts'
import { explainedVariance, valueLoss } from '../../src/train/value-loss.ts'
import { expectNear, expectSlope, isSmooth, numbers } from './finite-differences.ts'

describe('the value loss', () => {
  it('is half the squared error', () => {
    expect(valueLoss(3, 1)).toEqual({ loss: 2, byValue: 2, isClipped: false })
  })

  it('does not get better by a step of more than the clip', () => {
    const clipping = { old: 0, clip: 0.5 }
    // Towards the target: what the step beyond .5 gained does not count.
    expect(valueLoss(2, 3, clipping)).toEqual({ loss: 2.5 ** 2 / 2, byValue: 0, isClipped: true })
    // Away from it: all of the error counts.
    expect(valueLoss(-2, 3, clipping)).toEqual({ loss: 12.5, byValue: -5, isClipped: false })
    expect(valueLoss(0.25, 3, clipping)).toEqual(valueLoss(0.25, 3))
  })

  it('has a derivative by the value, clipped and not', () => {
    fc.assert(
      fc.property(numbers(5), numbers(5), numbers(5), fc.constantFrom(0.2, 1), (value, target, old, clip) => {
        expectSlope((x) => valueLoss(x, target).loss, value, valueLoss(value, target).byValue)
        // Both errors are the same size at the bounds, and where the target is halfway between the value and a bound.
        const bounds = [old - clip, old + clip]
        fc.pre(isSmooth(value, [...bounds, ...bounds.map((bound) => 2 * target - bound)]))
        const clipped = valueLoss(value, target, { old, clip })
        expectSlope((x) => valueLoss(x, target, { old, clip }).loss, value, clipped.byValue)
        expect(clipped.loss).toBeGreaterThanOrEqual(valueLoss(value, target).loss)
      }),
      { numRuns: 500 },
    )
  })
})

describe('the explained variance', () => {
  it('is 1 for perfect values, 0 for a constant, negative for worse', () => {
    expect(explainedVariance([1, 2, 3], [1, 2, 3])).toBe(1)
    expect(explainedVariance([7, 7, 7], [1, 2, 3])).toBe(0)
    expect(explainedVariance([3, 2, 1], [1, 2, 3])).toBe(-3)
    // A constant error is not variance.
    expect(explainedVariance([2, 3, 4], [1, 2, 3])).toBe(1)
  })

  it('does not exist where returns are all the same', () => {
    expect(explainedVariance([1, 2], [3, 3])).toBeUndefined()
    expect(explainedVariance([], [])).toBeUndefined()
    expect(() => explainedVariance([1], [1, 2])).toThrow('values: the length must be 2; it is 1')
  })
})

describe('the norm of a gradient', () => {
  it('is over all its parts', () => {
    expect(gradientNorm([[3], new Float64Array([0, 4])])).toBe(5)
    expect(gradientNorm([])).toBe(0)
  })

  it('is cut to the clip norm, and left alone below it', () => {
    fc.assert(
      fc.property(fc.array(numbers(10)), fc.double({ min: 0.1, max: 10, noNaN: true }), (gradient, clipNorm) => {
        const norm = gradientNorm([gradient])
        const scale = clipScale(norm, clipNorm)
        expectNear([gradientNorm([gradient.map((x) => x * scale)])], [Math.min(norm, clipNorm)])
      }),
    )
  })
})
