import type { TaskErrorCode } from '../errors.ts'
import { RETRY_AFTER_MAX_MS } from '../retry-errors.ts'
import type { Truncation } from '../trajectory/episode.ts'
import { STEP_KINDS } from '../trajectory/step.ts'
import { isUsage, USAGE_KEYS } from '../trajectory/usage.ts'
import type { DriverMessage, LoadFailure, WorkerMessage } from './messages.ts'
import { isPacked } from './read-packed.ts'
import {
  anything,
  atLeastOne,
  byHand,
  type Fields,
  finite,
  flag,
  isObject,
  leaf,
  lease,
  list,
  nameIn,
  object,
  oneOf,
  optional,
  packed,
  positive,
  type Shape,
  sha256,
  text,
  tuple,
  whole,
} from './shapes.ts'

/**
 * Checks decoded messages. Not with a schema library, because workers load this file, and `run` and `done` messages carry
 * 100,000 tasks a second. Unknown keys are allowed.
 */

/** Undefined if a driver may send this, else what is wrong with it. */
export const checkDriverMessage = (message: unknown): string | undefined => check(message, DRIVER_CHECKS)

/** Undefined if a worker may send this, else what is wrong with it. */
export const checkWorkerMessage = (message: unknown): string | undefined => check(message, WORKER_CHECKS)

/** The same for its side thread, which only sends requests. */
export function checkSideMessage(message: unknown): string | undefined {
  const wrong = checkWorkerMessage(message)
  if (wrong !== undefined) return wrong
  const { type } = message as WorkerMessage
  return SIDE_TYPES.has(type) ? undefined : `a '${type}' from its side thread`
}

const SIDE_TYPES: ReadonlySet<WorkerMessage['type']> = new Set(['ask', 'unask', 'more', 'hand-in'])

export const isDriverMessage = (message: unknown): message is DriverMessage => checkDriverMessage(message) === undefined

export const isWorkerMessage = (message: unknown): message is WorkerMessage => checkWorkerMessage(message) === undefined

/** A shape for every field of every message. The compiler reports a missing one. */
type Table<Message extends { type: string }> = {
  [Type in Message['type']]: { [Field in Exclude<keyof Extract<Message, { type: Type }>, 'type'>]-?: Shape }
}
type Checks = ReadonlyMap<string, readonly (readonly [field: string, isRight: Shape])[]>

function check(message: unknown, table: Checks): string | undefined {
  if (!isObject(message) || typeof message.type !== 'string') return 'a message without a type'
  const fields = table.get(message.type)
  if (fields === undefined) return `a message of unknown type '${message.type.slice(0, 40)}'`
  for (let i = 0; i < fields.length; i++) {
    const [field, isRight] = fields[i]!
    if (!isRight(message[field])) return `a malformed '${message.type}': its '${field}' is not right`
  }
  return undefined
}

const checksOf = (table: Readonly<Record<string, Fields>>): Checks =>
  new Map(Object.entries(table).map(([type, fields]) => [type, Object.entries(fields)]))

// ---- the parts of messages

const MAX_FRAME_CHARS = 64 * 1024 * 1024
const anyText = text(MAX_FRAME_CHARS)
const shortText = text(256)
/** Workers truncate the texts of errors far below this: see `worker/error-item.ts`. */
const errorText = text(1024 * 1024)

const agentRef = object({ name: anyText, module: anyText, fingerprint: optional(shortText) })

const settings = object({
  concurrency: atLeastOne,
  recycleAfterTasks: optional(positive),
  recycleAboveMb: optional(positive),
  withheldEnv: list(anyText),
})

const profile = object({
  agent: whole,
  runId: anyText,
  seed: finite,
  timeoutMs: optional(positive),
  announce: flag,
  recorded: flag,
})

const ERROR_CODES: Readonly<Record<TaskErrorCode, true>> = {
  TASK_THREW: true,
  TASK_TIMEOUT: true,
  TASK_BLOCKED_WORKER: true,
  TASK_CANCELLED: true,
  RUN_DEADLINE: true,
  RUN_BUDGET: true,
  DEPENDENCY_FAILED: true,
  WORKER_CRASHED: true,
  RERUN_LIMIT: true,
  PROCESS_EXIT: true,
  UNCAUGHT_IN_TASK: true,
  ANSWER_NOT_SERIALIZABLE: true,
  SETUP_FAILED: true,
  REQUIRES_UNMET: true,
  ALL_SUBAGENTS_FAILED: true,
  ENVIRONMENT_FAULT: true,
  ACTION_INVALID: true,
  WORLD_UNAVAILABLE: true,
  WORLD_FAILED: true,
  WORLD_CRASHED: true,
  WORLD_TIMEOUT: true,
  WORLD_NOT_DETERMINISTIC: true,
  WORLD_DISCONNECTED: true,
  MODEL_UNKNOWN: true,
  MODEL_RATE_LIMIT: true,
  MODEL_TRANSIENT: true,
  MODEL_TIMEOUT: true,
  MODEL_INVALID_REQUEST: true,
  MODEL_AUTHENTICATION: true,
  MODEL_CONTENT_FILTER: true,
  MODEL_CONTEXT_LENGTH: true,
  MODEL_OUTPUT_INVALID: true,
  MODEL_MISMATCH: true,
  MODEL_PERMIT_TIMEOUT: true,
  MODEL_UNAVAILABLE: true,
  CACHE_MISS: true,
  REQUEST_INVALID: true,
  PACKAGE_MISSING: true,
}

/** For values that the driver stores or passes on without reading them now. */
const anyPacked = packed(undefined, (value) => isPacked(value))

const wait = leaf(0.5, (ms) => finite(ms) && (ms as number) >= 0 && (ms as number) <= RETRY_AFTER_MAX_MS)

/** An error in a message, also in place of an outcome. */
export const errorItem: Shape = object({
  code: nameIn(ERROR_CODES),
  name: errorText,
  message: errorText,
  stack: optional(errorText),
  retryable: optional(flag),
  retryAfterMs: optional(wait),
  thrown: optional(anyPacked),
})

const LOAD_FAILURES: Readonly<Record<LoadFailure, true>> = {
  AGENT_NOT_FOUND: true,
  AGENT_DEFINED_TOO_LATE: true,
  AGENT_MISMATCH: true,
  AGENT_REDEFINED: true,
  AGENT_LOAD_FAILED: true,
  RUNNERS_IN_WORKER: true,
}

const subTask = object({
  id: optional(anyText),
  ref: agentRef,
  params: anyPacked,
  input: anyPacked,
  // The driver reads these itself.
  options: object({
    timeoutMs: optional(positive),
    maxAttempts: optional(atLeastOne),
    requires: optional(list(anyText)),
    rerun: optional(oneOf('auto', 'never')),
    info: optional(anyPacked),
  }),
})

/** The body of a request for sub-tasks. */
export const subTasksAsked: Shape = object({ ordinal: whole, tasks: list(subTask) })

const orNull = (of: Shape): Shape => byHand(of, (value) => value === null || value === undefined || of(value))

const ENDINGS = ['terminated', 'truncated', 'unknown']
const TRUNCATIONS: Readonly<Record<Truncation, true>> = {
  maxSteps: true,
  budget: true,
  context: true,
  timeout: true,
  environment: true,
}
const ending = byHand(
  object({ kind: oneOf(...ENDINGS), by: optional(nameIn(TRUNCATIONS)) }),
  (value) =>
    isObject(value) &&
    ENDINGS.includes(value.kind as string) &&
    (value.kind === 'truncated') === (typeof value.by === 'string' && Object.hasOwn(TRUNCATIONS, value.by)),
)

/** The experience in an outcome, read together with it. */
export const experience: Shape = object({
  episode: optional(
    object({ ending, reward: orNull(finite), success: orNull(flag), finalObservation: optional(anything) }),
  ),
  digest: optional(shortText),
})

/** The driver reads the packed parts later: see `read-outcome.ts` and `steps.ts`. */
const outcomes = list(
  tuple(
    lease,
    oneOf(0, 1, 2, 3),
    packed(undefined, () => true),
    whole,
    whole,
    packed(experience, () => true),
  ),
)
const path = list(anyText, 16)
const step = tuple(
  whole,
  leaf('{}', (body) => typeof body === 'string' || body instanceof Uint8Array),
  leaf(0, (kind) => whole(kind) && (kind as number) < STEP_KINDS.length),
  orNull(finite),
  orNull(object(Object.fromEntries(USAGE_KEYS.map((key) => [key, optional(leaf(1, (value) => isUsage(key, value)))])))),
  orNull(whole),
  orNull(list(tuple(path, whole, whole), 64)),
  orNull(
    list(
      tuple(
        path,
        leaf(new ArrayBuffer(2), (buffer) => buffer instanceof ArrayBuffer),
      ),
      64,
    ),
  ),
)
const STEP_FIELDS = (step.parts as Extract<Shape['parts'], { kind: 'tuple' }>).items
const records = list(tuple(lease, list(byHand(step, isStep)), list(anyText)))
const tasks = list(
  tuple(
    whole,
    whole,
    leaf('id', (id) => typeof id === 'string' || whole(id)),
    anything,
    atLeastOne,
    leaf({}, (extras) => isObject(extras)),
  ),
)

// ---- messages with many tasks: plain loops that allocate nothing

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
    if (!Array.isArray(outcome) || outcome.length < 4 || outcome.length > 6) return false
    const status: unknown = outcome[1]
    if (outcome.length > 4 && !whole(outcome[4])) return false
    if (!whole(outcome[0]) || !whole(outcome[3]) || !(status === 0 || status === 1 || status === 2 || status === 3))
      return false
  }
  return true
}

/** Empty fields at the end of a step are left out. */
function isStep(value: unknown): boolean {
  if (!Array.isArray(value) || value.length < 2 || value.length > STEP_FIELDS.length) return false
  for (let i = 0; i < value.length; i++) if (!STEP_FIELDS[i]!(value[i])) return false
  return true
}

function isRecordList(records: unknown): boolean {
  if (!Array.isArray(records)) return false
  for (let i = 0; i < records.length; i++) {
    const record: unknown = records[i]
    if (!Array.isArray(record) || record.length !== 3 || !whole(record[0])) return false
    if (!areSteps(record[1]) || !areLines(record[2])) return false
  }
  return true
}

const areSteps = list(byHand(step, isStep))
const areLines = list(anyText)

// ---- the messages

export const DRIVER_MESSAGES = {
  hello: { protocol: whole, codec: shortText, settings },
  agent: {
    key: whole,
    ref: agentRef,
    params: anything,
    entry: optional(anyText),
    bundle: optional(object({ sha256, module: anyText, entry: optional(anyText) })),
  },
  profile: { key: whole, profile },
  forget: { profiles: list(whole) },
  run: { tasks: byHand(tasks, isTaskList), careful: flag },
  recall: {},
  go: { lease },
  cancel: { lease, reason: oneOf('cancelled', 'deadline') },
  ping: {},
  stored: { bytes: whole },
  answer: { request: whole, ok: flag, last: flag, value: anything },
  yours: { request: whole },
  clock: { request: whole, stands: flag },
} satisfies Table<DriverMessage>

export const WORKER_MESSAGES = {
  ready: { protocol: whole, codecs: list(shortText, 64), node: shortText, pid: whole },
  loaded: { agent: whole },
  'load-failed': { agent: whole, code: nameIn(LOAD_FAILURES), message: errorText, stack: optional(errorText) },
  done: { records: byHand(records, isRecordList), outcomes: byHand(outcomes, isOutcomeList) },
  started: { leases: list(lease) },
  running: { tasks: list(tuple(lease, whole)) },
  'may-start': { lease },
  hungry: {},
  returned: { unstarted: list(lease) },
  retire: { reason: errorText, unstarted: list(lease) },
  exiting: { lease, error: errorItem, runMs: optional(whole) },
  'cancel-seen': { lease },
  pong: {},
  preparing: { agents: whole },
  stray: { error: errorItem },
  ask: {
    request: whole,
    lease,
    service: shortText,
    kind: oneOf('one', 'parts', 'own'),
    slot: oneOf('keep', 'give'),
    clock: oneOf('runs', 'stands'),
    // Each service checks its own question.
    body: anything,
  },
  unask: { request: whole, lease },
  more: { request: whole, lease, parts: whole },
  'hand-in': { request: whole, lease, value: anyPacked },
} satisfies Table<WorkerMessage>

const DRIVER_CHECKS = checksOf(DRIVER_MESSAGES)
const WORKER_CHECKS = checksOf(WORKER_MESSAGES)
