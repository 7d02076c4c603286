import { setImmediate as turn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { CollectionAhead } from '../../dist/train/pipeline/collection-ahead.js'

/** Collections that end when the test says so. Each has two groups. */
function collections(maxStaleness: number, { last = 9, unplannable = -1 } = {}) {
  const begun = new Map<number, PromiseWithResolvers<string> & { take: (groups: number) => void }>()
  const ahead = new CollectionAhead<number, string>({
    ...{ maxStaleness, groups: 2, updates: 0, groupsOf: () => 2 },
    plan: (number) => {
      if (number === unplannable) throw new Error('the disk is full')
      return number > last ? undefined : number
    },
    collect: (number, { started, room }) => {
      const take = (groups: number) => {
        for (let i = 0; i < groups; i++) started()
        if (groups === 2) room()
      }
      const collection = { ...Promise.withResolvers<string>(), take }
      begun.set(number, collection)
      return collection.promise
    },
  })
  const end = async (number: number) => {
    begun.get(number)!.resolve(`batch ${number}`)
    await turn()
  }
  return { ahead, begun: () => [...begun.keys()], of: (number: number) => begun.get(number)!, end }
}

test('batches come in the order of updates, though a later one is done first', async () => {
  const { ahead, begun, of, end } = collections(2)
  const first = ahead.next()
  expect(begun()).toEqual([0])
  for (const number of [0, 1, 2]) {
    of(number).take(2)
    await turn()
  }
  // Three are open: the fourth waits for an update.
  expect(begun()).toEqual([0, 1, 2])
  await end(1)
  await end(2)
  await end(0)
  expect(await first).toBe('batch 0')
  expect(begun()).toEqual([0, 1, 2])
  ahead.consumed()
  expect(begun()).toEqual([0, 1, 2, 3])
  expect(await ahead.next()).toBe('batch 1')
})

test('the next plan is made when workers have room, not before', async () => {
  const { ahead, begun, of } = collections(2)
  void ahead.next()
  of(0).take(1)
  await turn()
  expect(begun()).toEqual([0])
})

test('with maxStaleness 0 nothing is begun before it is asked for', async () => {
  const { ahead, begun, of, end } = collections(0)
  const first = ahead.next()
  of(0).take(2)
  await end(0)
  await first
  ahead.consumed()
  await turn()
  expect(begun()).toEqual([0])
  void ahead.next()
  expect(begun()).toEqual([0, 1])
})

test('what keeps a batch from being collected is thrown when its turn has come', async () => {
  const { ahead, of, end } = collections(1)
  const first = ahead.next()
  of(0).take(2)
  await turn()
  of(1).take(2)
  of(1).reject(new Error('all of them failed'))
  await end(0)
  expect(await first).toBe('batch 0')
  ahead.consumed()
  await expect(ahead.next()).rejects.toThrow('all of them failed')
})

test('so is what keeps a plan from being made', async () => {
  const { ahead, of, end } = collections(1, { unplannable: 1 })
  const first = ahead.next()
  of(0).take(2)
  await end(0)
  expect(await first).toBe('batch 0')
  ahead.consumed()
  await expect(ahead.next()).rejects.toThrow('the disk is full')
})

test('after the last update there is none, and what was begun is waited for', async () => {
  const { ahead, begun, of, end } = collections(3, { last: 0 })
  const first = ahead.next()
  of(0).take(2)
  await turn()
  expect(begun()).toEqual([0])
  const closed = ahead.close()
  expect(await Promise.race([closed, turn('waits')])).toBe('waits')
  await end(0)
  await closed
  await first
  ahead.consumed()
  expect(await ahead.next()).toBeUndefined()
})
