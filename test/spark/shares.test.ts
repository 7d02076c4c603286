import { describe, expect, test } from 'vitest'
import { allowance, coresForSlots, fairShares, type Member } from '../../src/engines/spark/shares.ts'

const member = (id: string, wanted: number, held = 0, reserve = 1): Member => ({
  ...{ id, name: id, since: id.charCodeAt(0), held, wanted, reserve },
})

test.each([
  [7, [7], [7]],
  [7, [7, 7], [4, 3]],
  [7, [7, 1], [6, 1]],
  [7, [2, 7, 7], [2, 3, 2]],
  [7, [0, 7], [0, 7]],
  [2, [5, 5, 5], [1, 1, 0]],
  [100, [3, 4], [3, 4]],
])('%i cores, wanted %j: shares %j', (cores, wanted, shares) => {
  const members = wanted.map((count, index) => member('abc'[index]!, count))
  const found = fairShares(cores, members)
  expect(members.map(({ id }) => found.get(id))).toEqual(shares)
})

test('the largest reserve counts, and one core is always left', () => {
  expect(coresForSlots(8, [member('a', 1, 0, 1), member('b', 1, 0, 3)])).toBe(5)
  expect(coresForSlots(2, [member('a', 1, 0, 5)])).toBe(1)
})

test('what is above the share is given back only if somebody is short', () => {
  expect(allowance(member('a', 0, 5), [member('b', 2, 2)], 7)).toBe(5)
  expect(allowance(member('a', 0, 5), [member('b', 3, 2)], 7)).toBe(0)
  expect(allowance(member('a', 7, 7), [member('b', 7)], 7)).toBe(4)
  // There are fewer cores than before.
  expect(allowance(member('a', 7, 7), [], 4)).toBe(4)
})

/** Drivers that speak in any order, as `core-share.ts` does: post, look, and post again before taking more. */
describe.each([1, 2, 3, 4, 5, 6, 7, 8])('drivers in random order, seed %i', (seed) => {
  const CORES = 7
  let state = seed * 2_654_435_761
  const random = (below: number) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }

  test('never take more than there is, and all get their share in the end', () => {
    const posted = new Map<string, Member>()
    const taken = new Map<string, number>()
    const wanted = new Map<string, number>()
    function* live(id: string): Generator<void> {
      for (;;) {
        const me = { ...member(id, wanted.get(id)!, taken.get(id)!) }
        posted.set(id, me)
        yield
        const others = () => [...posted.values()].filter((other) => other.id !== id)
        let limit = allowance(me, others(), CORES)
        yield
        if (limit > me.held) {
          posted.set(id, { ...me, held: limit })
          yield
          const held = others().reduce((sum, other) => sum + other.held, 0)
          if (limit > CORES - held) limit = me.held
          yield
        }
        // Those that are given back end one after the other.
        taken.set(id, Math.max(limit, taken.get(id)! - 1))
        yield
      }
    }
    const ids = [...'abcd']
    const drivers = ids.map((id) => {
      taken.set(id, 0)
      wanted.set(id, random(9))
      return live(id)
    })
    for (let step = 0; step < 4000; step++) {
      // In the second half nobody changes its mind.
      if (step < 2000 && random(20) === 0) wanted.set(ids[random(4)]!, random(9))
      drivers[random(4)]!.next()
      expect([...taken.values()].reduce((sum, count) => sum + count, 0)).toBeLessThanOrEqual(CORES)
    }
    const shares = fairShares(
      CORES,
      ids.map((id) => member(id, wanted.get(id)!)),
    )
    for (const id of ids) expect(taken.get(id)).toBeGreaterThanOrEqual(shares.get(id)!)
  })
})
