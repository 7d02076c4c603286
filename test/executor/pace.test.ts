import { expect, test } from 'vitest'
import { Paces } from '../../src/executor/pace.ts'

/** The weights of places whose tasks take so long, after some time. */
function weights(times: readonly number[], rounds = 200): number[] {
  const [paces, agent] = [new Paces(), { meanMs: 0 }]
  const places = times.map((_, n) => paces.of(`p${n}`))
  for (let round = 0; round < rounds; round++) for (const [n, ms] of times.entries()) places[n]!.note(ms, agent)
  return places.map(({ weight }) => weight)
}

test.each([
  { what: 'one place alone has nothing to be compared with', times: [500], expected: [1] },
  { what: 'places that are alike count alike', times: [10, 10, 11], expected: [1, 1, 1] },
  { what: 'a machine that is three times slower', times: [10, 30], expected: [1, 3] },
  { what: 'one that is a hundred times slower counts for 16 at most', times: [10, 1000], expected: [1, 16] },
  { what: 'tasks of a millisecond say nothing about a machine', times: [0.1, 1], expected: [1, 1] },
])('$what', ({ times, expected }) => expect(weights(times)).toEqual(expected))

test('a machine that is fast again is given more work again', () => {
  const [paces, agent] = [new Paces(), { meanMs: 0 }]
  const [one, other] = [paces.of('one'), paces.of('other')]
  const work = (otherMs: number) => {
    for (let n = 0; n < 1000; n++) {
      one.note(10, agent)
      other.note(otherMs, agent)
    }
    return other.weight
  }
  expect([work(40), work(10)]).toEqual([4, 1])
})
