import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { StalenessGate } from '../../dist/train/pipeline/staleness-gate.js'

/**
 * A simulated training: groups take random times, some much longer than others; some fail, and some teach nothing. The clock goes from event to event, so that
 * thousands of trainings are tried in seconds.
 */
interface Simulation {
  readonly maxStaleness: number
  readonly batch: number
  /** Groups that workers have room for. */
  readonly concurrency: number
  readonly updates: number
  /** Of groups that teach nothing, and of those that fail. */
  readonly skipped: number
  readonly failed: number
  readonly slow: number
  /** Milliseconds of an update; those of a group are about 100. */
  readonly updateMs: number
  readonly seed: number
}

type Ended = 'learned' | 'skipped' | 'failed'

interface Consumed {
  readonly number: number
  /** Updates since its policy was made. */
  readonly staleness: number
  readonly ended: readonly Ended[]
}

const simulations = fc.record<Simulation>({
  maxStaleness: fc.integer({ min: 0, max: 4 }),
  batch: fc.integer({ min: 1, max: 32 }),
  concurrency: fc.integer({ min: 1, max: 200 }),
  updates: fc.integer({ min: 1, max: 25 }),
  skipped: fc.constantFrom(0, 0.3, 0.9, 1),
  failed: fc.constantFrom(0, 0.1),
  slow: fc.constantFrom(0, 0.05),
  updateMs: fc.constantFrom(0, 10, 100, 1000),
  seed: fc.integer(),
})

function simulate(simulation: Simulation, watch: (gate: StalenessGate, running: number) => void = () => {}) {
  const { maxStaleness, batch, concurrency, updates, skipped, failed, slow, updateMs } = simulation
  const gate = new StalenessGate({ maxStaleness, batch })
  const random = seeded(simulation.seed)
  const events: { at: number; happens: () => void }[] = []
  const after = (ms: number, happens: () => void) => events.push({ at: now + ms, happens })
  const open = new Map<number, { openedAt: number; ended: Ended[] }>()
  const consumed: Consumed[] = []
  let [now, started, running, trains] = [0, 0, 0, false]

  const start = () => {
    const number = gate.start()
    const { ended } = open.get(number)!
    started++
    running++
    after((20 + random() * 160) * (random() < slow ? 20 : 1), () => {
      running--
      ended.push(random() < failed ? 'failed' : random() < skipped ? 'skipped' : 'learned')
      if (ended.length === batch) gate.done(number)
    })
  }
  const train = (number: number) => {
    const { openedAt, ended } = open.get(number)!
    consumed.push({ number, staleness: gate.updates - openedAt, ended })
    trains = true
    after(updateMs, () => {
      trains = false
      expect(gate.consume()).toBe(number)
      open.delete(number)
    })
  }
  for (;;) {
    while (running < concurrency && gate.capacity > 0 && gate.next !== updates) {
      if (gate.next !== undefined) open.set(gate.open(), { openedAt: gate.updates, ended: [] })
      start()
    }
    if (gate.ready !== undefined && !trains) train(gate.ready)
    watch(gate, running)
    // Groups count from their start until their batch is consumed, whatever they were good for; the rest is free.
    const held = [...open.values()].reduce((sum, { ended }) => sum + ended.length, 0) + running
    expect(gate.capacity).toBe((maxStaleness + 1) * batch - held)
    if (events.length === 0) break
    const first = events.reduce((best, { at }, i) => (at < events[best]!.at ? i : best), 0)
    const [{ at, happens }] = events.splice(first, 1) as [(typeof events)[number]]
    now = at
    happens()
  }
  return { consumed, started, ms: now, gate }
}

test('no batch is older than maxStaleness, none is lost, and nothing waits for ever, whatever groups are skipped or fail', () => {
  fc.assert(
    fc.property(simulations, (simulation) => {
      const { consumed, started, gate } = simulate(simulation)
      const { updates, batch, maxStaleness } = simulation
      expect(consumed.map(({ number }) => number)).toEqual(Array.from({ length: updates }, (_, number) => number))
      expect(Math.max(...consumed.map(({ staleness }) => staleness))).toBeLessThanOrEqual(maxStaleness)
      // Every group that was started is in exactly one batch, also those that were good for nothing.
      expect(consumed.map(({ ended }) => ended.length)).toEqual(consumed.map(() => batch))
      expect(started).toBe(updates * batch)
      // All of it was given back.
      expect(gate.capacity).toBe((maxStaleness + 1) * batch)
    }),
    { numRuns: 400 },
  )
}, 120_000)

test('with maxStaleness 0 collecting and learning take turns', () => {
  fc.assert(
    fc.property(simulations, (simulation) => {
      const { consumed } = simulate({ ...simulation, maxStaleness: 0 }, ({ ready }, running) => {
        if (ready !== undefined) expect(running).toBe(0)
      })
      expect(new Set(consumed.map(({ staleness }) => staleness))).toEqual(new Set([0]))
    }),
    { numRuns: 100 },
  )
}, 120_000)

describe('a training in which an update takes as long as collecting its batch', () => {
  // 5 % slow episodes: a third of the groups of eight have one.
  const usual = { batch: 16, concurrency: 16, updates: 60, skipped: 0, failed: 0, slow: 1 - 0.95 ** 8, seed: 7 }
  const alone = simulate({ ...usual, maxStaleness: 0, updateMs: 0 }).ms / usual.updates
  const cycle = (maxStaleness: number, updateMs = alone) =>
    simulate({ ...usual, maxStaleness, updateMs }).ms / usual.updates / Math.max(alone, updateMs)

  test('takes at most 1.1 times as long as one of the two, not twice', () => {
    expect(cycle(0)).toBeGreaterThan(1.9)
    for (const maxStaleness of [1, 2, 4]) expect(cycle(maxStaleness)).toBeLessThan(1.1)
  })

  test('waits less for slow episodes the more batches are open', () => {
    expect(cycle(1, alone / 10)).toBeLessThan(0.7)
    expect(cycle(2, alone / 10)).toBeLessThan(0.5)
  })
})

test('a batch is opened as late as possible, so that its policy is as new as can be', () => {
  const gate = new StalenessGate({ maxStaleness: 3, batch: 2 })
  expect([gate.next, gate.capacity]).toEqual([0, 8])
  gate.open()
  gate.start()
  expect([gate.next, gate.capacity]).toEqual([undefined, 7])
  gate.start()
  expect([gate.next, gate.capacity]).toEqual([1, 6])
})

test('it goes on from updates that were made before, and batches may be smaller', () => {
  const gate = new StalenessGate({ maxStaleness: 1, batch: 2, updates: 7 })
  expect([gate.open(1), gate.start(), gate.open(1), gate.start()]).toEqual([7, 7, 8, 8])
  expect([gate.next, gate.capacity]).toEqual([undefined, 0])
  gate.done(8)
  expect(gate.ready).toBeUndefined()
  gate.done(7)
  expect([gate.ready, gate.consume(), gate.ready, gate.updates, gate.next]).toEqual([7, 7, 8, 8, 9])
})

test('who does not keep to it is told what is open', () => {
  const gate = new StalenessGate({ maxStaleness: 0, batch: 2 })
  expect(() => gate.start()).toThrow('cannot start a group: 0 updates, open batches []')
  expect(() => gate.consume()).toThrow('cannot consume a batch, none is ready')
  gate.open()
  gate.start()
  expect(() => gate.open()).toThrow('open batches [0: 1 of 2 started]')
  expect(() => gate.done(0)).toThrow('cannot complete batch 0')
})

/** mulberry32 */
function seeded(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
}
