import { expect, it } from 'vitest'
import type { Entry } from '../src/executor/entry.ts'
import type { Fleet } from '../src/executor/fleet.ts'
import { SpecialTasks } from '../src/executor/special-tasks.ts'
import type { WorkerHandle } from '../src/executor/worker-handle.ts'

it('a worker that was being emptied for suspects is free again when another has taken them', () => {
  const worker = (load: number) =>
    ({
      ...{ state: 'ready', spare: false, careful: false, reserved: false, load },
      ...{ flush() {}, hasLabels: () => true },
    }) as unknown as WorkerHandle
  const busy = worker(3)
  const later = worker(2)
  const fleet = { workers: new Set([busy, later]), refresh() {} } as unknown as Fleet
  const given: WorkerHandle[] = []
  const special = new SpecialTasks(fleet, { give: (to) => given.push(to), unmet: () => expect.fail(), waits: () => {} })

  special.runAlone({ settled: false, options: {} } as Entry)
  special.place()
  expect([busy.reserved, later.reserved, given]).toEqual([true, false, []])

  later.load = 0
  special.place()
  expect(given).toEqual([later])
  expect(busy.reserved).toBe(false)
})
