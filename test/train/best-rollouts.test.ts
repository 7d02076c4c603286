import { describe, expect, it } from 'vitest'
import { bestRollouts } from '../../src/train/best-rollouts.ts'

describe('the best rollouts of a group', () => {
  it.for([
    { what: 'the one with the highest reward', rewards: [0, 1, 0.5], best: [1] },
    { what: 'all that are equally good, in their order', rewards: [1, 0, 1, 1], best: [0, 2, 3] },
    { what: 'at most so many', rewards: [1, 0, 1, 1], options: { most: 2 }, best: [0, 2] },
    { what: 'never one without a reward', rewards: [null, -2, Number.NaN, -1, null], best: [3] },
    { what: 'none below a bound', rewards: [0.2, 0.4], options: { atLeast: 0.5 }, best: [] },
    { what: 'one that is exactly at the bound', rewards: [0.2, 0.5], options: { atLeast: 0.5 }, best: [1] },
    { what: 'none where nobody can tell', rewards: [null, null], best: [] },
    { what: 'none of nothing', rewards: [], best: [] },
  ])('$what', ({ rewards, options, best }) => {
    expect(bestRollouts(rewards, options)).toEqual(best)
  })
})
