import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { Batcher, type Sent } from '../../dist/train/lora/serve/batcher.js'

interface Turn {
  readonly lane: string
  readonly added: readonly number[]
  readonly dropped: readonly number[]
}

/** A request is how many turns it takes. */
function batcher({ maxRequests = 100, turnMs = 1 } = {}) {
  const turns: Turn[] = []
  const left = new Map<string, Map<number, number>>()
  const state = { failure: undefined as Error | undefined }
  const made = new Batcher<number, string>({
    maxRequests,
    isFatal: (error) => (error as Error).message === 'dead',
    advance: async (lane, added: readonly Sent<number>[], dropped) => {
      turns.push({ lane, added: added.map(({ request }) => request), dropped })
      await sleep(turnMs)
      if (state.failure) {
        const { failure } = state
        state.failure = undefined
        throw failure
      }
      const rows = left.get(lane) ?? new Map<number, number>()
      left.set(lane, rows)
      for (const { id, request } of added) rows.set(id, request)
      for (const id of dropped) rows.delete(id)
      const done = new Map<number, string>()
      for (const [id, count] of rows)
        if (count > 1) rows.set(id, count - 1)
        else if (rows.delete(id)) done.set(id, `${lane} ${id}`)
      return done
    },
  })
  const ask = (lane: string, request: number, signal = new AbortController().signal) =>
    made.ask(lane, async () => request, signal)
  return { made, turns, ask, state, left }
}

test('requests that come together are sampled together; later ones join at the next turn', async () => {
  const { ask, turns } = batcher()
  const first = [ask('a', 5), ask('a', 2), ask('a', 3)]
  await expect.poll(() => turns.length).toBeGreaterThan(0)
  await Promise.all([...first, ask('a', 1)])
  expect(turns[0]).toEqual({ lane: 'a', added: [5, 2, 3], dropped: [] })
  expect(turns.flatMap(({ added }) => added)).toEqual([5, 2, 3, 1])
})

test('a request is prepared before it joins; one that cannot be made fails alone', async () => {
  const { made, ask, turns } = batcher()
  const { signal } = new AbortController()
  const ready = Promise.withResolvers<number>()
  const slow = made.ask('a', () => ready.promise, signal)
  const broken = made.ask('a', () => Promise.reject(new Error('no template')), signal)
  await expect(broken).rejects.toThrow('no template')
  const other = ask('a', 1)
  setTimeout(() => ready.resolve(7), 20)
  await Promise.all([slow, other])
  expect(turns[0]!.added.toSorted()).toEqual([1, 7])
})

test('lanes take turns', async () => {
  const { ask, turns } = batcher()
  await Promise.all([ask('a', 4), ask('b', 4), ask('c', 2)])
  expect(turns.map(({ lane }) => lane).join('')).toBe('abcabcabab')
})

test('a client that goes away is not sampled, or dropped at the next turn', async () => {
  const { ask, turns, left } = batcher({ turnMs: 5 })
  const [waiting, running] = [new AbortController(), new AbortController()]
  const asked = [ask('a', 50, running.signal), ask('a', 1)]
  await asked[1]
  const late = ask('a', 9, waiting.signal)
  waiting.abort(new Error('gone'))
  await expect(late).rejects.toThrow('gone')
  running.abort(new Error('left'))
  await expect(asked[0]).rejects.toThrow('left')
  await ask('a', 1)
  expect(turns.flatMap(({ added }) => added)).toEqual([50, 1, 1])
  expect(turns.flatMap(({ dropped }) => dropped)).toHaveLength(1)
  expect(left.get('a')!.size).toBe(0)
})

test('a turn that fails loses its lane; a dead process loses all, and those who waited go on', async () => {
  const { ask, state, turns } = batcher({ turnMs: 10 })
  const lanes = [ask('a', 20), ask('b', 3)]
  while (turns.length < 2) await sleep(1)
  state.failure = new Error('not finite')
  const outcomes = await Promise.allSettled(lanes)
  expect(outcomes.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
  const all = [ask('a', 20), ask('b', 20)]
  const seen = turns.length
  while (turns.length < seen + 3) await sleep(1)
  state.failure = new Error('dead')
  const waiting = ask('c', 1)
  expect((await Promise.allSettled(all)).map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  await expect(waiting).resolves.toMatch('c')
})

test('a full queue says so, and has room again', async () => {
  const { ask } = batcher({ maxRequests: 2 })
  const two = [ask('a', 2), ask('a', 2)]
  await expect(ask('a', 1)).rejects.toMatchObject({ status: 429, message: /the limit of 2 concurrent requests/ })
  await Promise.all(two)
  await expect(ask('a', 1)).resolves.toMatch('a')
})

test('a lane that is closed fails what waits and what is under way', async () => {
  const { made, ask } = batcher({ turnMs: 5 })
  const asked = [ask('a', 50), ask('b', 2)]
  await sleep(20)
  made.fail(new Error('unloaded'), 'a')
  await expect(asked[0]).rejects.toThrow('unloaded')
  await expect(asked[1]).resolves.toMatch('b')
})
