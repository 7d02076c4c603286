import type { WorkerExit } from '../engines/engine.ts'
import type { ErrorItem } from '../protocol/messages.ts'
import { object, oneOf, optional, text, whole } from '../protocol/shapes.ts'
import type { LastWords } from '../worker/watchdog.ts'
import type { Lease, TaskEntry } from './task-entry.ts'
import type { WorkerHandle } from './worker-handle.ts'

/** A task that waits for sub-tasks counts as innocent until it was present in this many unexplained crashes. */
const WAITING_CRASHES = 2
/**
 * After this many it is charged, even if other tasks were present each time: with only one worker, a task cannot be kept apart
 * from its own sub-tasks.
 */
const WAITING_CRASHES_MOST = 4
/** A task becomes a suspect after this many lost machines, */
const PLACES_LOST = 3
/** and is charged after this many more while it ran there alone. */
const PLACES_LOST_ALONE = 3

/** A crash without a known culprit. It is explained when one of the tasks that were present is charged. */
interface Crash {
  explained: boolean
}

/** A task may have run in a worker that crashed. */
export interface Presence {
  readonly crash: Crash
  /** It is known to have started. */
  readonly started: boolean
}

/** How often a task runs again without being charged. Only a faulty or hostile worker reaches this. */
export const FREE_RERUNS = 50

/** Limit on the stack that a watchdog sends. */
const MAX_STACK_CHARS = 64 * 1024

/**
 * Which task crashed a worker? The order of events does not tell, because finished outcomes may not have been sent; and the
 * worker may have been killed from outside. So:
 * - a task is guilty only if the worker named it, or if this is the second crash while it ran, and it ran alone;
 * - a task that certainly did not run is innocent. A task that waits for sub-tasks probably is, although it need not await
 *   them, so it counts as innocent at first;
 * - all others are suspects. They are run again in halves until the guilty one is alone.
 *
 * The loss of a machine is no task's fault. Only a task that was present at several losses is a suspect, and it is guilty only
 * after several losses while it ran there alone.
 */
export interface Verdict {
  readonly guilty?: Lease
  readonly status: 'crashed' | 'timeout'
  readonly error?: ErrorItem
  /** How long the guilty task ran, if the worker said so. */
  readonly runMs?: number | undefined
  /** Suspects that ran and suspects that wait for sub-tasks are run again in halves, apart from each other. */
  readonly suspects: readonly Lease[]
  readonly waiting: readonly Lease[]
  readonly innocent: readonly Lease[]
}

/** Returns the verdict, and notes the crash on the tasks that were present. */
export function judge(worker: WorkerHandle, exit: WorkerExit): Verdict {
  const leases = [...worker.leases.values()]
  if (worker.expected) return verdict(leases, {})
  if (exit.placeLost) return judgeLostPlace(leases, exit)
  const named = namedBy(worker, exit)
  const guilty = named && worker.leases.get(named.lease)
  if (guilty && mayHaveRun(guilty)) return verdict(leases, { ...named, guilty })
  return judgeCrash(leases, exit, named !== undefined)
}

/** `namesAnother`: the worker named a task that it does not hold. */
function judgeCrash(leases: readonly Lease[], exit: WorkerExit, namesAnother: boolean): Verdict {
  const ran = leases.filter(mayHaveRun)
  const suspects = ran.filter((lease) => !isWaiting(lease))
  // Workers that crash before they start a suspect: the suspects stay apart from other tasks.
  if (ran.length === 0) return verdict(leases, { suspects: leases.filter(({ group }) => group > 0) })
  const alone = aloneIn(ran)
  // A task that was answered, and whose code went on running, did it; or the worker lies. A suspect alone could only lie.
  if (namesAnother && !alone?.group) return verdict(leases, { suspects })
  const blocked = parseLastWords(exit) !== undefined
  const isProven =
    alone !== undefined && (blocked || (alone.group > 0 && unexplained(alone.entry).some(({ started }) => started)))
  const crash: Crash = { explained: false }
  for (const { entry, started } of ran)
    entry.crashes = [...unexplained(entry), { crash, started }].slice(-WAITING_CRASHES_MOST)
  const waiting = ran.filter(
    (lease) => isWaiting(lease) && (lease.group > 0 || unexplained(lease.entry).length >= WAITING_CRASHES),
  )
  const guilty = isProven ? alone : waiting.find(isCornered)
  if (guilty === undefined) return verdict(leases, { suspects, waiting })
  return verdict(leases, blocked ? { guilty, status: 'timeout', error: blockedError('') } : { guilty })
}

/** The only task that can have run, if it is known to have started. */
const aloneIn = (ran: readonly Lease[]) => (ran.length === 1 && ran[0]!.started ? ran[0] : undefined)

const isCornered = ({ group, entry }: Lease) => group === 1 && unexplained(entry).length >= WAITING_CRASHES_MOST

function judgeLostPlace(leases: readonly Lease[], exit: WorkerExit): Verdict {
  const ran = leases.filter(mayHaveRun)
  for (const { entry } of ran) entry.placesLost++
  const [only] = ran
  const alone = ran.length === 1 && only !== undefined && only.group > 0 && only.started
  if (alone && ++only.entry.placesLostAlone >= PLACES_LOST_ALONE)
    return verdict(leases, { guilty: only, error: lostError(exit) })
  return verdict(leases, { suspects: ran.filter(({ entry }) => entry.placesLost >= PLACES_LOST) })
}

/** All leases that are neither guilty nor suspect are innocent. */
function verdict(
  leases: readonly Lease[],
  { guilty, status = 'crashed', error, runMs, suspects = [], waiting = [] }: Partial<Verdict> = {},
): Verdict {
  const accused = new Set([guilty, ...suspects, ...waiting])
  const innocent = leases.filter((lease) => !accused.has(lease))
  return { status, runMs, suspects, waiting, innocent, ...(guilty && { guilty }), ...(error && { error }) }
}

/** The task is charged: its crashes are explained and no longer count against other tasks. */
export function explain(entry: TaskEntry): void {
  for (const { crash } of entry.crashes ?? []) crash.explained = true
  entry.crashes = undefined
  entry.placesLostAlone = 0
}

const unexplained = ({ crashes = [] }: TaskEntry): Presence[] => crashes.filter(({ crash }) => !crash.explained)

const isWaiting = ({ waitingCalls }: Lease) => waitingCalls > 0

/** The starts of suspects, and of tasks with `rerun: 'never'`, are announced before they run. */
const mayHaveRun = ({ group, entry, started }: Lease): boolean => started || !(group > 0 || entry.options.neverRerun)

function namedBy(
  worker: WorkerHandle,
  exit: WorkerExit,
): { lease: number; status: 'crashed' | 'timeout'; error: ErrorItem; runMs: number | undefined } | undefined {
  if (worker.exiting) return { ...worker.exiting, status: 'crashed' }
  const words = parseLastWords(exit)
  if (words?.lease === undefined) return undefined
  return { lease: words.lease, status: 'timeout', error: blockedError(words.stack), runMs: words.runMs }
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

/** Only the watchdog should write to this pipe, but a task can. */
const isLastWords = object({
  blocked: oneOf(true),
  lease: optional(whole),
  runMs: optional(whole),
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

/** How a worker ended, in short. */
export const exitText = ({ reason, signal, code }: WorkerExit): string =>
  reason ?? (signal === null ? `exit code ${code}` : `signal ${signal}`)

/** The error of a task that was given out too often. */
export function rerunLimitError(exit: WorkerExit | undefined): ErrorItem {
  const last = exit === undefined ? 'its worker returned it' : `its worker ended (${exitText(exit)})`
  return {
    code: 'RERUN_LIMIT',
    name: 'TaskError',
    message: `the task was given to ${FREE_RERUNS + 1} workers, and none of them answered it; the last time ${last}`,
    stack: undefined,
  }
}

/** The error of a crash without a better explanation. */
export function crashError(exit: WorkerExit): ErrorItem {
  const said = exit.stderr === undefined ? '' : `; its last words on stderr:\n${exit.stderr}`
  const blocked = parseLastWords(exit)
    ? ', because a task blocked its event loop beyond a timeout: this one or one beside it'
    : ''
  return {
    code: 'WORKER_CRASHED',
    name: 'TaskError',
    message: `the worker that ran this task ended (${exitText(exit)})${blocked}${said}`,
    stack: undefined,
  }
}

function lostError(exit: WorkerExit): ErrorItem {
  const error = crashError(exit)
  const times = `${PLACES_LOST_ALONE} times a machine or its worker was lost while this task ran there alone`
  return { ...error, message: `${times}; the last time, ${error.message}` }
}
