// CPU time of a process and all its descendants, from /proc (Linux).
import { existsSync, readdirSync, readFileSync } from 'node:fs'

const microsecondsPerTick = 10_000 // USER_HZ, 100 on every Linux that Node runs on

interface TreeCpu {
  /** Microseconds of each live thread, precise to the nanosecond; empty if the kernel keeps no such count. */
  readonly threads: ReadonlyMap<string, number>
  /** Microseconds including ended threads and reaped children, but sampled at the timer tick, in steps of 10 ms. */
  readonly all: number
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
  const threads = new Map<string, number>()
  let ticks = 0
  for (const pid of tree(root)) {
    // utime, stime, and the same of children that ended and were waited for
    for (const field of statFields(pid)?.slice(11, 15) ?? []) ticks += Number(field)
    for (const thread of list(`/proc/${pid}/task`)) {
      const stat = read(`/proc/${pid}/task/${thread}/schedstat`)
      if (stat !== undefined) threads.set(thread, Number(stat.split(' ')[0]) / 1000)
    }
  }
  return { threads, all: ticks * microsecondsPerTick }
}

/**
 * Microseconds of CPU between two readings. The precise count forgets what an ended thread had used, so where one has
 * ended the sampled one must do. Else it must not: work that timers start falls on the very ticks at which it samples,
 * and it counts such work twice over.
 */
export function cpuBetween(before: TreeCpu, after: TreeCpu): number {
  let microseconds = 0
  for (const [thread, used] of after.threads) microseconds += used - (before.threads.get(thread) ?? 0)
  const ended = [...before.threads.keys()].some((thread) => !after.threads.has(thread))
  return ended || after.threads.size === 0 ? after.all - before.all : microseconds
}
