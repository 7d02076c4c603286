import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Sampler, type SamplerState } from '../../dist/train/pipeline/sampler.js'

const named = (count: number) => Array.from({ length: count }, (_, index) => `t${index + 1}`)

test('81 tasks by 16: every update is full, has each task once, and all tasks come equally often', () => {
  const sampler = new Sampler(named(81), 1, undefined)
  const drawn = Array.from({ length: 81 }, (_, update) => sampler.draw(update, 16))
  expect(new Set(drawn.map((tasks) => new Set(tasks).size))).toEqual(new Set([16]))
  const counts = Map.groupBy(drawn.flat(), (task) => task)
  expect([...counts.values()].map(({ length }) => length)).toEqual(Array(81).fill(16))
})

test('passes are shuffled anew, and an update with fewer tasks than wanted has them all', () => {
  const sampler = new Sampler(named(5), 1, undefined)
  const drawn = Array.from({ length: 6 }, (_, update) => sampler.draw(update, 16))
  for (const tasks of drawn) expect(tasks.toSorted()).toEqual(named(5))
  expect(new Set(drawn.map(String)).size).toBeGreaterThan(1)
})

test('goes on from its state with the same draws, wherever it was interrupted', () => {
  const counts = { count: fc.integer({ min: 1, max: 12 }), tasks: fc.integer({ min: 1, max: 20 }), cut: fc.nat(20) }
  fc.assert(
    fc.property(fc.record(counts), ({ count, tasks, cut }) => {
      const straight = new Sampler(named(tasks), 7, undefined)
      const drawn = Array.from({ length: 25 }, (_, update) => straight.draw(update, count))
      const first = new Sampler(named(tasks), 7, undefined)
      for (let update = 0; update < cut; update++) first.draw(update, count)
      const state = JSON.parse(JSON.stringify(first.state())) as SamplerState
      const second = new Sampler(named(tasks), 7, undefined, state)
      // A plan of an earlier session, which the stored state does not know.
      second.skip(cut, drawn[cut]!)
      for (let update = cut + 1; update < 25; update++) expect(second.draw(update, count)).toEqual(drawn[update])
    }),
  )
})
