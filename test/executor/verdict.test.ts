import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { WorkerExit } from '../../src/engines/engine.ts'
import { explain, judge } from '../../src/executor/suspects.ts'
import type { Lease, TaskEntry } from '../../src/executor/task-entry.ts'
import type { WorkerHandle } from '../../src/executor/worker-handle.ts'

/** What holds of every verdict, whatever happened before. The single rules are in suspects.test.ts. */

const held = fc.record({
  task: fc.nat(5),
  waiting: fc.boolean(),
  started: fc.boolean(),
  group: fc.nat(3),
  never: fc.boolean(),
})
const exits = fc.constantFrom<WorkerExit>(
  { code: null, signal: 'SIGSEGV' },
  { code: null, signal: null, placeLost: true, reason: 'the node is gone' },
  { code: 1, signal: null, lastWords: JSON.stringify({ blocked: true, stack: '' }) },
  { code: 1, signal: null, lastWords: JSON.stringify({ blocked: true, lease: 1, stack: '' }) },
  { code: 1, signal: null, lastWords: 'no JSON' },
)
const crash = fc.record({
  tasks: fc.uniqueArray(held, { selector: ({ task }) => task, maxLength: 6 }),
  exit: exits,
  expected: fc.boolean(),
})

const newTask = (n: number) => ({ id: `t${n}`, placesLost: 0, placesLostAlone: 0 }) as unknown as TaskEntry

test('each task is in one part of the verdict, and nobody who cannot have run is accused', () => {
  fc.assert(
    fc.property(fc.array(crash, { minLength: 1, maxLength: 12 }), (crashes) => {
      const entries = Array.from({ length: 6 }, (_, n) => newTask(n))
      for (const { tasks, exit, expected } of crashes) {
        const leases = new Map(
          tasks.map(({ task, waiting, started, group, never }, at) => {
            const entry = Object.assign(entries[task]!, { options: { neverRerun: never } })
            return [at + 1, { entry, waitingCalls: waiting ? 1 : 0, started, group } as Lease]
          }),
        )
        const verdict = judge({ leases, expected } as unknown as WorkerHandle, exit)
        const { guilty, suspects, waiting, innocent } = verdict
        const accused = [...(guilty ? [guilty] : []), ...(guilty ? [] : [...suspects, ...waiting])]
        expect(new Set([...accused, ...innocent])).toEqual(new Set(leases.values()))
        expect(accused.length + innocent.length).toBe(leases.size)
        if (expected) expect(accused).toEqual([])
        const mayHaveRun = ({ started, group, entry }: Lease) =>
          started || !(group > 0 || entry.options.neverRerun === true)
        if ([...leases.values()].some(mayHaveRun))
          for (const lease of accused) expect(mayHaveRun(lease), lease.entry.id).toBe(true)
        const named = exit.lastWords?.includes('"lease":1') === true
        // On silence, only a task that is known to have run is charged; and it ran alone, or it waits for sub-tasks.
        if (guilty && !named) {
          expect(guilty.started || guilty.waitingCalls > 0).toBe(true)
          expect(guilty.waitingCalls > 0 || [...leases.values()].filter(mayHaveRun).length === 1).toBe(true)
        }
        if (guilty) explain(guilty.entry)
      }
    }),
    { numRuns: 1000 },
  )
})

test('halving the suspects finds the one task that kills its worker', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 64 }), fc.nat(), (count, which) => {
      const entries = Array.from({ length: count }, (_, n) => Object.assign(newTask(n), { options: {} }))
      const killer = entries[which % count]!
      let groups: TaskEntry[][] = [entries]
      let group = 0
      for (let crashes = 0; crashes < 8; crashes++) {
        const there = groups.find((some) => some.includes(killer))!
        const leases = new Map(
          there.map((entry, at) => [at + 1, { entry, waitingCalls: 0, started: true, group } as Lease]),
        )
        const worker = { leases, careful: group > 0, expected: false } as unknown as WorkerHandle
        const { guilty, suspects } = judge(worker, { code: null, signal: 'SIGKILL' })
        if (guilty) {
          expect(guilty.entry).toBe(killer)
          return
        }
        expect(suspects.map(({ entry }) => entry)).toContain(killer)
        const half = Math.ceil(suspects.length / 2)
        const tasks = suspects.map(({ entry }) => entry)
        groups = [tasks.slice(0, half), tasks.slice(half)]
        group = 2
      }
      expect.fail(`task ${killer.id} of ${count} was not found in 8 crashes`)
    }),
  )
})
