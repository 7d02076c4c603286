import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { patienceOf } from '../../src/models/calling.ts'
import { Breaker } from '../../src/models/driver/breaker.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const PATIENCE_MS = 10_000

function breaker() {
  const opened = vi.fn()
  const made = new Breaker({ what: "model 'm'", where: 'q at http://s', patienceMs: PATIENCE_MS, opened })
  const refuse = (times: number, status = 401) => {
    for (let nth = 0; nth < times; nth++) {
      made.begins()
      made.failed({ kind: 'refused', status, why: `HTTP ${status}` })
    }
  }
  const unreachable = () => {
    made.begins()
    made.failed({ kind: 'unreachable', why: 'ECONNREFUSED' })
  }
  const answer = () => {
    made.begins()
    made.answered()
  }
  return { made, opened, refuse, unreachable, answer }
}

test('a handful of refusals in a row stops calls, with one error that says why', () => {
  const { made, opened, refuse } = breaker()
  const listener = vi.fn()
  made.onOpen(listener)
  refuse(4)
  expect(made.error).toBeUndefined()
  refuse(3)
  expect(made.error).toMatchObject({ code: 'MODEL_UNAVAILABLE' })
  expect(made.error!.message).toMatch(/^model 'm' is not available: HTTP 401 \(q at http:\/\/s\); 5 calls in a row/)
  expect(opened).toHaveBeenCalledTimes(1)
  expect(listener).toHaveBeenCalledTimes(1)
})

test('an answer in between starts the count again', () => {
  const { made, refuse, answer } = breaker()
  for (let round = 0; round < 5; round++) {
    refuse(4, 404)
    answer()
  }
  expect(made.error).toBeUndefined()
})

test('403 counts only until the model has answered once', () => {
  const { made, refuse, answer } = breaker()
  answer()
  refuse(50, 403)
  expect(made.error).toBeUndefined()
  refuse(5, 402)
  expect(made.error).toBeDefined()
  const other = breaker()
  other.refuse(5, 403)
  expect(other.made.error).toBeDefined()
})

test('an unreachable server has its time, once for all calls; longer if it has answered before', () => {
  const first = breaker()
  for (let call = 0; call < 100; call++) first.unreachable()
  vi.advanceTimersByTime(PATIENCE_MS - 1)
  expect(first.made.error).toBeUndefined()
  vi.advanceTimersByTime(1)
  expect(first.made.error!.message).toContain('ECONNREFUSED (q at http://s); 100 calls failed within 10.0 s')

  const second = breaker()
  second.answer()
  second.unreachable()
  vi.advanceTimersByTime(3 * PATIENCE_MS)
  // It is back.
  second.answer()
  second.unreachable()
  vi.advanceTimersByTime(3 * PATIENCE_MS)
  expect(second.made.error).toBeUndefined()
  vi.advanceTimersByTime(PATIENCE_MS)
  expect(second.made.error).toBeDefined()
})

test('a call that is under way may have reached the server: calls do not stop before it ends', () => {
  const slow = breaker()
  slow.unreachable()
  slow.made.begins()
  vi.advanceTimersByTime(100 * PATIENCE_MS)
  expect(slow.made.error).toBeUndefined()
  slow.made.answered()
  vi.advanceTimersByTime(100 * PATIENCE_MS)
  expect(slow.made.error).toBeUndefined()

  const dead = breaker()
  dead.unreachable()
  dead.made.begins()
  dead.made.begins()
  vi.advanceTimersByTime(2 * PATIENCE_MS)
  dead.made.failed({ kind: 'unreachable', why: 'ECONNREFUSED' })
  expect(dead.made.error!.message).toContain('2 calls failed within 10.0 s')

  // HTTP 429 or 500, or a call that was cancelled: nothing that others share.
  const busy = breaker()
  busy.unreachable()
  busy.made.begins()
  busy.made.failed(undefined)
  vi.advanceTimersByTime(100 * PATIENCE_MS)
  expect(busy.made.error).toBeUndefined()
})

test('a server of calls that are never tried again has its time, too', () => {
  const made = new Breaker({ what: "model 'm'", where: 'w', patienceMs: patienceOf(0), opened: () => {} })
  made.begins()
  made.failed({ kind: 'unreachable', why: 'ECONNREFUSED' })
  vi.advanceTimersByTime(9999)
  expect(made.error).toBeUndefined()
  vi.advanceTimersByTime(1)
  expect(made.error).toBeDefined()
})

test('the time of an unreachable server is that of the retries of one call', () => {
  expect([0, 1, 3, 6].map(patienceOf)).toEqual([10_000, 1000, 2625, 23_625])
})
