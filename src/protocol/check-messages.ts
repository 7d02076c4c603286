import type { TaskErrorCode } from '../errors.ts'
import type { DriverMessage, LoadFailure, WorkerMessage } from './messages.ts'

/**
 * Whether what was decoded is a message. By hand and not by schema: workers load this, and `run` and `done` come by the
 * hundred thousand tasks a second. Packed values are opaque; keys that are not known are let pass.
 */

/** Undefined if a driver may say this, else what is wrong with it. */
export const checkDriverMessage = (message: unknown): string | undefined => check(message, DRIVER_FIELDS)

/** Undefined if a worker may say this, else what is wrong with it. */
export const checkWorkerMessage = (message: unknown): string | undefined => check(message, WORKER_FIELDS)

export const isDriverMessage = (message: unknown): message is DriverMessage => checkDriverMessage(message) === undefined

export const isWorkerMessage = (message: unknown): message is WorkerMessage => checkWorkerMessage(message) === undefined

type Check = (value: unknown) => boolean
type Fields = readonly (readonly [field: string, check: Check])[]
/** A check for every field of every message: the compiler finds one that was forgotten. */
type Table<Message extends { type: string }> = {
  [Type in Message['type']]: { [Field in Exclude<keyof Extract<Message, { type: Type }>, 'type'>]-?: Check }
}

function check(message: unknown, table: ReadonlyMap<string, Fields>): string | undefined {
  if (!isObject(message) || typeof message.type !== 'string') return 'a message without a type'
  const fields = table.get(message.type)
  if (fields === undefined) return `a message of unknown type '${message.type.slice(0, 40)}'`
  for (let i = 0; i < fields.length; i++) {
    const [field, isRight] = fields[i]!
    if (!isRight(message[field])) return `a malformed '${message.type}': its '${field}' is not right`
  }
  return undefined
}

const tableOf = (table: Record<string, Record<string, Check>>): ReadonlyMap<string, Fields> =>
  new Map(Object.entries(table).map(([type, fields]) => [type, Object.entries(fields)]))

// ---- what a field may be

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null

const anything: Check = () => true
const flag: Check = (value) => typeof value === 'boolean'
const text: Check = (value) => typeof value === 'string'
const finite: Check = (value) => Number.isFinite(value)
const positive: Check = (value) => typeof value === 'number' && value > 0 && value < Infinity
/** A count, a key, a lease. */
const whole: Check = (value) => Number.isSafeInteger(value) && (value as number) >= 0
const atLeastOne: Check = (value) => whole(value) && value !== 0
const shortText: Check = (value) => typeof value === 'string' && value.length <= 256
const sha256: Check = (value) => typeof value === 'string' && /^[0-9a-f]{64}$/.test(value)

const optional =
  (isRight: Check): Check =>
  (value) =>
    value === undefined || isRight(value)

const oneOf =
  (...names: readonly unknown[]): Check =>
  (value) =>
    names.includes(value)

const nameIn =
  (names: Readonly<Record<string, true>>): Check =>
  (value) =>
    typeof value === 'string' && Object.hasOwn(names, value)

const listOf =
  (isRight: Check, most = Infinity): Check =>
  (value) => {
    if (!Array.isArray(value) || value.length > most) return false
    for (let i = 0; i < value.length; i++) if (!isRight(value[i])) return false
    return true
  }

function shape(fields: Record<string, Check>): Check {
  const list = Object.entries(fields)
  return (value) => isObject(value) && list.every(([field, isRight]) => isRight(value[field]))
}

// ---- the parts of messages

const agentRef = shape({ name: text, module: text, fingerprint: optional(shortText) })

const settings = shape({
  concurrency: atLeastOne,
  recycleAfterTasks: optional(positive),
  recycleAboveMb: optional(positive),
  withheldEnv: listOf(text),
})

const profile = shape({
  agent: whole,
  runId: text,
  seed: finite,
  timeoutMs: optional(positive),
  announce: flag,
})

const ERROR_CODES: Readonly<Record<TaskErrorCode, true>> = {
  TASK_THREW: true,
  TASK_TIMEOUT: true,
  TASK_BLOCKED_WORKER: true,
  TASK_CANCELLED: true,
  RUN_DEADLINE: true,
  DEPENDENCY_FAILED: true,
  WORKER_CRASHED: true,
  PROCESS_EXIT: true,
  UNCAUGHT_IN_TASK: true,
  ANSWER_NOT_SERIALISABLE: true,
  SETUP_FAILED: true,
  REQUIRES_UNMET: true,
  ALL_SUBAGENTS_FAILED: true,
}

const errorItem = shape({ code: nameIn(ERROR_CODES), name: text, message: text, stack: optional(text) })

const LOAD_FAILURES: Readonly<Record<LoadFailure, true>> = {
  AGENT_NOT_FOUND: true,
  AGENT_DEFINED_TOO_LATE: true,
  AGENT_MISMATCH: true,
  AGENT_REDEFINED: true,
  AGENT_LOAD_FAILED: true,
  RUNNERS_IN_WORKER: true,
}

const subTask = shape({
  id: optional(text),
  ref: agentRef,
  // Not opaque: the driver reads these itself.
  options: shape({
    timeoutMs: optional(positive),
    maxAttempts: optional(atLeastOne),
    requires: optional(listOf(text)),
    rerun: optional(oneOf('auto', 'never')),
  }),
})

// ---- the two that come in bulk: plain loops, nothing allocated

function isTaskList(tasks: unknown): boolean {
  if (!Array.isArray(tasks)) return false
  for (let i = 0; i < tasks.length; i++) {
    const task: unknown = tasks[i]
    if (!Array.isArray(task) || task.length < 4 || task.length > 6) return false
    if (!whole(task[0]) || !whole(task[1])) return false
    if (typeof task[2] !== 'string' && !whole(task[2])) return false
    if (task.length > 4 && !atLeastOne(task[4])) return false
    if (task.length > 5 && !isObject(task[5])) return false
  }
  return true
}

function isOutcomeList(outcomes: unknown): boolean {
  if (!Array.isArray(outcomes)) return false
  for (let i = 0; i < outcomes.length; i++) {
    const outcome: unknown = outcomes[i]
    if (!Array.isArray(outcome) || outcome.length !== 4) return false
    const status: unknown = outcome[1]
    if (!whole(outcome[0]) || !whole(outcome[3]) || !(status === 0 || status === 1 || status === 2 || status === 3))
      return false
  }
  return true
}

function isEmitList(emits: unknown): boolean {
  if (!Array.isArray(emits)) return false
  for (let i = 0; i < emits.length; i++) {
    const emit: unknown = emits[i]
    if (!Array.isArray(emit) || emit.length !== 3 || !whole(emit[0])) return false
    if (!areSteps(emit[1]) || !areLines(emit[2])) return false
  }
  return true
}

const areSteps = listOf((step) => typeof step === 'string' || step instanceof Uint8Array)
const areLines = listOf(text)

// ---- the messages

const DRIVER_FIELDS = tableOf({
  hello: { protocol: whole, codec: shortText, settings },
  agent: {
    key: whole,
    ref: agentRef,
    params: anything,
    entry: optional(text),
    bundle: optional(shape({ sha256, module: text, entry: optional(text) })),
  },
  profile: { key: whole, profile },
  forget: { profiles: listOf(whole) },
  run: { tasks: isTaskList, careful: flag },
  recall: {},
  go: { lease: whole },
  cancel: { lease: whole, reason: oneOf('cancelled', 'deadline') },
  reply: { request: whole, ok: flag, value: anything },
} satisfies Table<DriverMessage>)

const WORKER_FIELDS = tableOf({
  ready: { protocol: whole, codecs: listOf(shortText, 64), node: shortText, pid: whole },
  loaded: { agent: whole },
  'load-failed': { agent: whole, code: nameIn(LOAD_FAILURES), message: text, stack: optional(text) },
  done: { emits: isEmitList, outcomes: isOutcomeList },
  started: { leases: listOf(whole) },
  'may-start': { lease: whole },
  hungry: {},
  returned: { unstarted: listOf(whole) },
  retire: { reason: text, unstarted: listOf(whole) },
  fate: { lease: whole, error: errorItem },
  'cancel-seen': { lease: whole },
  stray: { error: errorItem },
  subtasks: { request: whole, lease: whole, ordinal: whole, tasks: listOf(subTask) },
} satisfies Table<WorkerMessage>)
