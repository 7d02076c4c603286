import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, relative } from 'node:path'
import { afterAll, expect } from 'vitest'

/**
 * Notes what each test file costs, for `npm run test:costs`: wall time, and the CPU time of all its processes. A group of Linux
 * counts those, because daemons leave the tree of processes.
 */
const file = process.env.MANYWORLDS_TEST_COSTS
const GROUPS = '/sys/fs/cgroup/cpuacct'

if (file !== undefined) {
  const name = relative(process.cwd(), expect.getState().testPath!)
  const group = `${GROUPS}/mw-${process.pid}-${basename(name)}`
  mkdirSync(group, { recursive: true })
  writeFileSync(`${group}/cgroup.procs`, String(process.pid))
  const began = performance.now()
  // Registered first, so called last.
  afterAll(() => {
    const cpuMs = Number(readFileSync(`${group}/cpuacct.usage`, 'utf8')) / 1e6
    appendFileSync(
      file,
      `${JSON.stringify({ name, wallMs: Math.round(performance.now() - began), cpuMs: Math.round(cpuMs) })}\n`,
    )
  })
}
