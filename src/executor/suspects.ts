import type { WorkerExit } from '../engines/engine.ts'
import type { ErrorItem } from '../protocol/messages.ts'
import { object, oneOf, optional, text, whole } from '../protocol/shapes.ts'
import type { LastWords } from '../worker/watchdog.ts'
import type { Entry, Lease } from './entry.ts'
import type { WorkerHandle } from './worker-handle.ts'

/** A task that waits for sub-tasks is taken for innocent until it was in so many crashes that nobody is charged with. */
const WAITING_CRASHES = 2
/**
 * After so many it is charged, though others were beside it each time: where there is one worker only, a task cannot be kept
 * apart from its own sub-tasks.
 */
const WAITING_CRASHES_MOST = 4
/** So many places may be lost under a task before it is a suspect, */
const PLACES_LOST = 3
/** and so many more while it runs there alone, before it is charged. */
const PLACES_LOST_ALONE = 3

/** A crash that nobody was named for. It is explained when one of those who were there is charged. */
export interface Crash {
  explained: boolean
}

/** Of the eight lines that a watchdog sends. */
const MAX_STACK_CHARS = 64 * 1024

/**
 * Who did it, when a worker is gone? Outcomes that were finished but not sent make any guess by order wrong, so:
 * - the guilty is known only if the worker named it, or if it was alone;
 * - those that certainly did not run are innocent. Those that wait for sub-tasks most likely are: a task need not await what
 *   it has asked for, so they are taken for innocent at first;
 * - all others are suspects, to be run again in halves, in the end alone.
 *
 * A lost place is nobody's fault. Only who was there each time when places were lost is a suspect, and only who lost several
 * of them alone is guilty.
 */
export interface Verdict {
  readonly guilty?: Lease
  readonly status: 'crashed' | 'timeout'
  readonly error?: ErrorItem
  /** To be run again in halves: those that ran, and those that wait, apart from each other. */
  readonly suspects: readonly Lease[]
  readonly waiting: readonly Lease[]
  readonly innocent: readonly Lease[]
}

/** Also takes note, on the tasks, of what they were there for. */
export function judge(worker: WorkerHandle, exit: WorkerExit): Verdict {
  const leases = [...worker.leases.values()]
  if (worker.expected) return verdict(leases, {})
  if (exit.placeLost) return judgeLostPlace(worker, leases, exit)
  const named = namedBy(worker, exit)
  if (named === undefined) return judgeCrash(worker, leases, exit)
  // If it is not here, it was answered before, and its code went on: nobody who is here did it.
  const guilty = worker.leases.get(named.lease)
  return verdict(leases, guilty && { guilty, status: named.status, error: named.error })
}

function judgeCrash(worker: WorkerHandle, leases: readonly Lease[], exit: WorkerExit): Verdict {
  const ran = leases.filter((lease) => mayHaveRun(worker, lease))
  const crash: Crash = { explained: false }
  for (const { entry } of ran) entry.crashes = [...unexplained(entry), crash].slice(-WAITING_CRASHES_MOST)
  const suspects = ran.filter((lease) => !isWaiting(lease))
  const waiting = ran.filter(
    (lease) => isWaiting(lease) && (lease.group > 0 || unexplained(lease.entry).length >= WAITING_CRASHES),
  )
  const guilty = guiltyOf(ran, [...suspects, ...waiting])
  if (guilty === undefined) return verdict(leases, { suspects, waiting })
  const blocked = parseLastWords(exit) !== undefined
  return verdict(leases, blocked ? { guilty, status: 'timeout', error: blockedError('') } : { guilty })
}

function guiltyOf(ran: readonly Lease[], suspects: readonly Lease[]): Lease | undefined {
  const [only] = suspects
  if (only === undefined) return undefined
  // It was a suspect before, and those who wait beside it were not.
  if (suspects.length === 1 && only.group > 0) return only
  if (suspects.length === 1 && ran.length === 1 && !isWaiting(only)) return only
  return suspects.find(
    (lease) => isWaiting(lease) && lease.group === 1 && unexplained(lease.entry).length >= WAITING_CRASHES_MOST,
  )
}

function judgeLostPlace(worker: WorkerHandle, leases: readonly Lease[], exit: WorkerExit): Verdict {
  const ran = leases.filter((lease) => mayHaveRun(worker, lease))
  for (const { entry } of ran) entry.placesLost++
  const [only] = ran
  const alone = ran.length === 1 && only !== undefined && only.group > 0 && only.started
  if (alone && ++only.entry.placesLostAlone >= PLACES_LOST_ALONE)
    return verdict(leases, { guilty: only, error: lostError(exit) })
  return verdict(leases, { suspects: ran.filter(({ entry }) => entry.placesLost >= PLACES_LOST) })
}

/** Whoever is not accused is innocent. */
function verdict(
  leases: readonly Lease[],
  { guilty, status = 'crashed', error, suspects = [], waiting = [] }: Partial<Verdict> = {},
): Verdict {
  const accused = new Set([guilty, ...suspects, ...waiting])
  const innocent = leases.filter((lease) => !accused.has(lease))
  return { status, suspects, waiting, innocent, ...(guilty && { guilty }), ...(error && { error }) }
}

/** It is charged: what it was there for is explained, and counts against nobody else. */
export function explain(entry: Entry): void {
  for (const crash of entry.crashes ?? []) crash.explained = true
  entry.crashes = undefined
  entry.placesLostAlone = 0
}

const unexplained = ({ crashes = [] }: Entry): Crash[] => crashes.filter(({ explained }) => !explained)

const isWaiting = ({ waitingCalls }: Lease) => waitingCalls > 0

function mayHaveRun(worker: WorkerHandle, lease: Lease): boolean {
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
    const words: unknown = JSON.parse(exit.lastWords)
    return isLastWords(words) ? words : undefined
  } catch {
    return undefined
  }
}

/** Nobody but the watchdog should write there, but a task can. */
const isLastWords = object({
  blocked: oneOf(true),
  lease: optional(whole),
  stack: text(MAX_STACK_CHARS),
}) as unknown as (words: unknown) => words is LastWords

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

function lostError(exit: WorkerExit): ErrorItem {
  const error = crashError(exit)
  const times = `${PLACES_LOST_ALONE} times a machine or its worker was lost while this task ran there alone`
  return { ...error, message: `${times}; the last time, ${error.message}` }
}
