import { expect, it } from 'vitest'
import type { Fleet } from '../../src/executor/fleet.ts'
import { SpecialTasks } from '../../src/executor/special-tasks.ts'
import type { TaskEntry } from '../../src/executor/task-entry.ts'
import type { WorkerHandle } from '../../src/executor/worker-handle.ts'

const worker = (load: number, waiting = 0) =>
  ({
    ...{ state: 'ready', spare: false, careful: false, reserved: false, load },
    leases: new Map(Array.from({ length: load + waiting }, (_, id) => [id, {}])),
    ...{ flush() {}, hasLabels: () => true },
  }) as unknown as WorkerHandle

it('a worker that was being emptied for suspects is free again when another has taken them', () => {
  const busy = worker(3)
  const later = worker(2)
  const fleet = { workers: new Set([busy, later]), refresh() {} } as unknown as Fleet
  const given: WorkerHandle[] = []
  const special = new SpecialTasks(fleet, { give: (to) => given.push(to), unmet: () => expect.fail(), waits: () => {} })

  special.runAlone({ settled: false, options: {} } as TaskEntry)
  special.place()
  expect([busy.reserved, later.reserved, given]).toEqual([true, false, []])

  later.load = 0
  later.leases.clear()
  special.place()
  expect(given).toEqual([later])
  expect(busy.reserved).toBe(false)
})

it('a suspect that was cancelled while it waited does not keep the only worker from the next one', () => {
  const fleet = { workers: new Set([worker(0)]), refresh() {} } as unknown as Fleet
  const given: TaskEntry[] = []
  const give = (_: WorkerHandle, entry: TaskEntry) => given.push(entry)
  const special = new SpecialTasks(fleet, { give, unmet: () => expect.fail(), waits: () => {} })
  const cancelled = { settled: false, options: {} } as TaskEntry
  const suspect = { settled: false, options: {} } as TaskEntry

  special.suspect([cancelled, suspect])
  cancelled.settled = true
  special.place()
  expect(given).toEqual([suspect])
})

const placed = (...workers: WorkerHandle[]) => {
  const fleet = { workers: new Set(workers), refresh() {} } as unknown as Fleet
  const given: WorkerHandle[] = []
  const special = new SpecialTasks(fleet, { give: (to) => given.push(to), unmet: () => expect.fail(), waits: () => {} })
  special.runAlone({ settled: false, options: {} } as TaskEntry)
  special.place()
  return { given, place: () => special.place() }
}

it('a suspect is not put beside a task that waits for sub-tasks, if another worker can become empty', () => {
  const [parents, busy] = [worker(0, 1), worker(2)]
  const { given, place } = placed(parents, busy)
  expect([given, parents.reserved, busy.reserved]).toEqual([[], false, true])
  busy.load = 0
  busy.leases.clear()
  place()
  expect(given).toEqual([busy])
})

it('a suspect is put beside a task that waits for sub-tasks, if there is no other way: it may be one of them', () => {
  const [parents, other] = [worker(0, 1), worker(0, 2)]
  expect(placed(parents, other).given).toEqual([parents])
  // Emptied as far as it can be.
  const emptied = worker(0, 1)
  emptied.reserved = true
  expect(placed(emptied, worker(2)).given).toEqual([emptied])
})
