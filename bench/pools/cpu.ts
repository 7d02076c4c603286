// CPU time of a process and all its descendants, from /proc (Linux).
import { existsSync, readdirSync, readFileSync } from 'node:fs'

const microsecondsPerTick = 10_000 // USER_HZ, 100 on every Linux that Node runs on

interface TreeCpu {
  /** Microseconds of all live threads, precise to the scheduler's tick; NaN if the kernel keeps no such count. */
  readonly live: number
  /** Microseconds including ended threads and reaped children, but in steps of 10 ms for each process. */
  readonly all: number
  readonly processes: number
}

export const canReadTree = existsSync('/proc/self/stat')

// Threads and processes may end between being listed and being read.
function read(path: string): string | undefined {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return undefined
  }
}

function list(path: string): string[] {
  try {
    return readdirSync(path)
  } catch {
    return []
  }
}

/** Fields of /proc/PID/stat from the third on: the second, the name, may itself hold blanks and brackets. */
const statFields = (pid: number) =>
  read(`/proc/${pid}/stat`)
    ?.replace(/^.*\) /s, '')
    .split(' ')

function tree(root: number): number[] {
  const parents = new Map<number, number>()
  for (const name of list('/proc')) {
    const pid = Number(name)
    const fields = Number.isInteger(pid) ? statFields(pid) : undefined
    if (fields) parents.set(pid, Number(fields[1]))
  }
  const found = [root]
  // The list grows while it is walked, so this reaches children of children.
  for (const pid of found) for (const [child, parent] of parents) if (parent === pid) found.push(child)
  return found
}

export function readTree(root: number): TreeCpu {
  const pids = tree(root)
  let live = 0
  let ticks = 0
  for (const pid of pids) {
    // utime, stime, and the same of children that ended and were waited for
    for (const field of statFields(pid)?.slice(11, 15) ?? []) ticks += Number(field)
    for (const thread of list(`/proc/${pid}/task`)) {
      const stat = read(`/proc/${pid}/task/${thread}/schedstat`)
      if (stat !== undefined) live += Number(stat.split(' ')[0]) / 1000
    }
  }
  return {
    live: existsSync(`/proc/${root}/schedstat`) ? live : Number.NaN,
    all: ticks * microsecondsPerTick,
    processes: pids.length,
  }
}

/** Microseconds of CPU between two readings. */
export function cpuBetween(before: TreeCpu, after: TreeCpu): number {
  const live = after.live - before.live
  const all = after.all - before.all
  // The precise count forgets what an ended thread or process had used. Where the two differ by more than the steps of
  // the coarse one explain, something ended in between, and the coarse one is right.
  const steps = 4 * microsecondsPerTick * Math.max(before.processes, after.processes)
  return Math.abs(all - live) <= steps ? live : all
}
