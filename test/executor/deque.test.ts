import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Deque } from '../../src/deque.ts'
import type { RunSink } from '../../src/executor/run.ts'
import { ResponseStream } from '../../src/runners/response-stream.ts'
import type { StartedRun } from '../../src/runners/start-run.ts'
import type { TaskResponse } from '../../src/task.ts'
import { liveBytes } from '../support/live-memory.ts'

test('takes back more items than a call may have arguments', () => {
  const deque = new Deque<number>()
  for (let n = 0; n < 10; n++) deque.push(-1)
  deque.shift()
  deque.unshift(Array.from({ length: 500_000 }, (_, n) => n))
  expect([deque.length, deque.shift(), deque.peek()]).toEqual([500_009, 0, 1])
})

test('is an array, whatever is done with it', () => {
  const step = fc.oneof(
    fc.record({ push: fc.integer({ min: 1, max: 2000 }) }),
    fc.record({ shift: fc.integer({ min: 1, max: 2000 }) }),
    fc.record({ unshift: fc.nat(5) }),
    fc.record({ remove: fc.nat(5000) }),
    fc.constant({ drain: true }),
  )
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
      const deque = new Deque<number>()
      let model: number[] = []
      let next = 0
      for (const one of steps) {
        if ('push' in one)
          for (let n = 0; n < one.push; n++) {
            deque.push(next)
            model.push(next++)
          }
        else if ('shift' in one) {
          const taken = Array.from({ length: one.shift }, () => deque.shift())
          expect(taken).toEqual(Array.from({ length: one.shift }, () => model.shift()))
        } else if ('unshift' in one) {
          const items = Array.from({ length: one.unshift }, () => next++)
          deque.unshift(items)
          model.unshift(...items)
        } else if ('remove' in one) {
          const at = model.indexOf(one.remove)
          if (at >= 0) model.splice(at, 1)
          expect(deque.remove((item) => item === one.remove)).toBe(at >= 0)
        } else {
          expect(deque.drain()).toEqual(model)
          model = []
        }
        expect([deque.length, deque.peek()]).toEqual([model.length, model[0]])
      }
      expect([...deque]).toEqual(model)
    }),
    { numRuns: 100 },
  )
})

test('a stream whose reader is always behind does not grow with the responses it has handed out', async () => {
  let sink: RunSink | undefined
  const started = { run: {}, dispatcher: { wake: () => {} } } as unknown as StartedRun
  const stream = new ResponseStream(async (given) => {
    sink = given
    return started
  })
  const response = { id: 'one' } as TaskResponse
  const first = stream.next()
  const push = () => sink!.response(0, response, 1, undefined)
  push()
  await first
  for (let n = 0; n < 600; n++) push()
  const before = liveBytes()
  for (let n = 0; n < 1_000_000; n++) {
    push()
    // Taken at once: the promise is settled already.
    void stream.next()
  }
  expect(liveBytes() - before).toBeLessThan(4_000_000)
  expect((await stream.next()).value).toBe(response)
})
