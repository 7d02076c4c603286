import type { WorkerExit } from '../engines/engine.ts'
import type { ErrorItem } from '../protocol/messages.ts'
import type { LastWords } from '../worker/watchdog.ts'
import type { Lease } from './entry.ts'
import type { WorkerHandle } from './worker-handle.ts'

/** So many machines may be lost under a task before it is suspected of that. */
const PLACES_LOST = 3

/**
 * Who did it, when a worker is gone? Outcomes that were finished but not sent make any guess by order wrong, so:
 * - the guilty is known only if the worker named it, or if it was alone;
 * - those that certainly did not run (not started, or waiting for sub-tasks) are innocent;
 * - all others are suspects, to be run again in halves, in the end alone.
 */
export interface Verdict {
  readonly guilty: Lease | undefined
  readonly status: 'crashed' | 'timeout'
  readonly error: ErrorItem | undefined
  readonly suspects: Lease[]
  readonly innocent: Lease[]
}

export function judge(worker: WorkerHandle, exit: WorkerExit): Verdict {
  const leases = [...worker.leases.values()]
  if (worker.expected || (exit.placeLost && !leases.some(losesPlaces)))
    return { guilty: undefined, status: 'crashed', error: undefined, suspects: [], innocent: leases }
  const named = namedBy(worker, exit)
  // It was answered before, and its code went on: nobody who is here did it.
  if (named && !worker.leases.has(named.lease))
    return { guilty: undefined, status: 'crashed', error: undefined, suspects: [], innocent: leases }
  const guilty = named && worker.leases.get(named.lease)
  if (named && guilty)
    return {
      guilty,
      status: named.status,
      error: named.error,
      suspects: [],
      innocent: leases.filter((lease) => lease !== guilty),
    }
  const suspects: Lease[] = []
  const innocent: Lease[] = []
  const suspected = (lease: Lease) => mayHaveRun(worker, lease) && (!exit.placeLost || losesPlaces(lease))
  for (const lease of leases) (suspected(lease) ? suspects : innocent).push(lease)
  if (suspects.length !== 1) return { guilty: undefined, status: 'crashed', error: undefined, suspects, innocent }
  const blocked = parseLastWords(exit) !== undefined
  return {
    guilty: suspects[0],
    status: blocked ? 'timeout' : 'crashed',
    error: blocked ? blockedError('') : undefined,
    suspects: [],
    innocent,
  }
}

/** A task that was there each time when a machine was lost may be what took it down. */
const losesPlaces = ({ entry }: Lease) => entry.placesLost >= PLACES_LOST

function mayHaveRun(worker: WorkerHandle, lease: Lease): boolean {
  if (lease.waitingCalls > 0) return false
  const announced = worker.careful || lease.entry.options.neverRerun
  return announced ? lease.started : true
}

function namedBy(
  worker: WorkerHandle,
  exit: WorkerExit,
): { lease: number; status: 'crashed' | 'timeout'; error: ErrorItem } | undefined {
  if (worker.fate) return { ...worker.fate, status: 'crashed' }
  const words = parseLastWords(exit)
  if (words?.lease === undefined) return undefined
  return { lease: words.lease, status: 'timeout', error: blockedError(words.stack) }
}

function parseLastWords(exit: WorkerExit): LastWords | undefined {
  if (exit.lastWords === undefined) return undefined
  try {
    return JSON.parse(exit.lastWords) as LastWords
  } catch {
    return undefined
  }
}

function blockedError(stack: string): ErrorItem {
  const message = 'the task blocked the event loop of its worker beyond its timeout, so the worker was ended'
  return {
    code: 'TASK_BLOCKED_WORKER',
    name: 'TaskError',
    message,
    stack: stack === '' ? undefined : `TaskError: ${message}\n${stack}`,
  }
}

/** What is told of a crash nobody could explain better. */
export function crashError(exit: WorkerExit): ErrorItem {
  const how = exit.reason ?? (exit.signal === null ? `exit code ${exit.code}` : `signal ${exit.signal}`)
  const said = exit.stderr === undefined ? '' : `; its last words on stderr:\n${exit.stderr}`
  return {
    code: 'WORKER_CRASHED',
    name: 'TaskError',
    message: `the worker that ran this task ended (${how})${said}`,
    stack: undefined,
  }
}
