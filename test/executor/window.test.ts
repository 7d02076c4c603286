import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Window } from '../../src/executor/window.ts'

/** `count` tasks that had their slots for `heldMs` each come back, every `everyMs`. */
function work(window: Window, { count, heldMs, everyMs }: { count: number; heldMs: number; everyMs: number }): void {
  window.wokeUp(0)
  for (let turn = 1; turn <= 100; turn++) window.done(count, count * heldMs, turn * everyMs)
}

describe('the window of a worker', () => {
  test('begins with one task, and doubles up to the concurrency while the worker is hungry', () => {
    const window = new Window(10)
    const limits = Array.from({ length: 6 }, () => {
      const { limit } = window
      window.hungry()
      return limit
    })
    expect(limits).toEqual([1, 2, 4, 8, 10, 10])
  })

  test.each([
    { what: 'tiny tasks, 50 in a millisecond', count: 100, heldMs: 0.02, everyMs: 2, ahead: [990, 1000] },
    { what: 'tasks of a millisecond', count: 4, heldMs: 1, everyMs: 4, ahead: [19, 20] },
    {
      what: 'no more than 1,024, however fast they are',
      count: 10_000,
      heldMs: 0.001,
      everyMs: 2,
      ahead: [1024, 1024],
    },
    { what: 'tasks that are rare', count: 1, heldMs: 10, everyMs: 1000, ahead: [0, 0] },
    {
      what: 'tasks that hold their slots for long, however many there are',
      count: 100,
      heldMs: 100,
      everyMs: 2,
      ahead: [0, 0],
    },
  ])('gives ahead what the worker does in 20 ms: $what', ({ ahead: [least, most], ...speed }) => {
    const window = new Window(8)
    work(window, speed)
    expect(window.limit - 1).toBeGreaterThanOrEqual(least!)
    expect(window.limit - 1).toBeLessThanOrEqual(most!)
  })

  test('does not count the time in which the worker had nothing to do', () => {
    const [busy, rested] = [new Window(8), new Window(8)]
    let now = 0
    for (let turn = 1; turn <= 100; turn++) {
      busy.done(4, 4, turn * 4)
      rested.wokeUp((now += 60_000))
      rested.done(4, 4, (now += 4))
    }
    expect(rested.limit).toBe(busy.limit)
  })

  test('learns from bursts as from a steady flow', () => {
    const window = new Window(8)
    // Answers come 40 at once, and nothing for the rest of the 40 ms.
    for (let turn = 1; turn <= 100; turn++) for (let n = 0; n < 10; n++) window.done(4, 4, turn * 40)
    expect(window.limit - 1).toBeGreaterThanOrEqual(19)
    expect(window.limit - 1).toBeLessThanOrEqual(20)
  })

  test('whatever happens, is never below one or above the concurrency and 1,024', () => {
    const event = fc.oneof(
      fc.constant('hungry' as const),
      fc.record({
        count: fc.integer({ min: 1, max: 5000 }),
        heldMs: fc.double({ min: 0, max: 1e6, noNaN: true }),
        ms: fc.nat(5000),
      }),
    )
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 1000 }), fc.array(event), (concurrency, events) => {
        const window = new Window(concurrency)
        let now = 0
        for (const one of events) {
          if (one === 'hungry') window.hungry()
          else window.done(one.count, one.heldMs, (now += one.ms))
          expect(window.limit).toSatisfy(Number.isInteger)
          expect(window.limit).toBeGreaterThanOrEqual(1)
          expect(window.limit).toBeLessThanOrEqual(concurrency + 1024)
          expect(window.overfull(concurrency + 1)).toBe(true)
          expect(window.overfull(1)).toBe(false)
        }
      }),
    )
  })
})
