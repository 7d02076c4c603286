import { isAgent } from './agent.ts'
import { didYouMean, nearest } from './did-you-mean.ts'
import { ManyworldsError } from './errors.ts'
import { isGrader } from './grade/grader.ts'
import { lastPackedSize, NotPackable, pack } from './protocol/pack.ts'
import type { TaskLike } from './task.ts'

/** Checks one task by hand instead of by schema, for speed: there may be a million tasks. */
const KNOWN = new Set([
  'id',
  'input',
  'agent',
  'timeoutMs',
  'maxAttempts',
  'dependsOn',
  'requires',
  'tools',
  'groundTruth',
  'grade',
  'metadata',
  'groupId',
  'rerun',
])
const MAX_ID_LENGTH = 512
/** Longer timers overflow in Node and fire at once. */
export const MAX_TIMER_MS = 2 ** 31 - 1

export function checkTask(task: unknown, index: number): asserts task is TaskLike {
  if (typeof task !== 'object' || task === null)
    throw invalid(index, undefined, `is ${show(task)}; give { input, agent } or agent.task(input)`)
  const { id, agent, timeoutMs, maxAttempts, dependsOn, requires, rerun, tools, groupId, metadata, grade } =
    task as Record<string, unknown>
  if (id !== undefined) checkId(id, index)
  if (!isAgent(agent)) throw invalid(index, id, agentProblem(task, agent))
  for (const key in task)
    if (!KNOWN.has(key)) {
      const allowed = [...KNOWN]
      throw invalid(index, id, `has an unknown key '${key}'${didYouMean(key, allowed)}; allowed: ${allowed.join(', ')}`)
    }
  if (timeoutMs !== undefined && !(typeof timeoutMs === 'number' && timeoutMs > 0 && timeoutMs <= MAX_TIMER_MS))
    throw invalid(
      index,
      id,
      `\`timeoutMs\` must be a number of milliseconds from 1 to ${MAX_TIMER_MS}, it is ${show(timeoutMs)}`,
    )
  if (maxAttempts !== undefined && !(Number.isInteger(maxAttempts) && (maxAttempts as number) >= 1))
    throw invalid(index, id, `\`maxAttempts\` must be a whole number of at least 1, it is ${show(maxAttempts)}`)
  if (dependsOn !== undefined) checkNames(dependsOn, 'dependsOn', index, id)
  if (requires !== undefined) checkNames(requires, 'requires', index, id)
  if (tools !== undefined) checkNames(tools, 'tools', index, id)
  if (groupId !== undefined && typeof groupId !== 'string')
    throw invalid(index, id, `\`groupId\` must be a string, it is ${show(groupId)}`)
  if (metadata !== undefined && (typeof metadata !== 'object' || metadata === null || Array.isArray(metadata)))
    throw invalid(index, id, `\`metadata\` must be an object, it is ${show(metadata)}`)
  if (grade !== undefined && !isGrader(grade))
    throw invalid(index, id, `\`grade\` must be a grader such as exactMatch(), it is ${show(grade)}`)
  if (rerun !== undefined && rerun !== 'auto' && rerun !== 'never')
    throw invalid(index, id, `\`rerun\` must be 'auto' or 'never', it is ${show(rerun)}`)
}

function checkId(id: unknown, index: number): void {
  if (typeof id !== 'string' || id === '')
    throw invalid(index, undefined, `\`id\` must be a non-empty string, it is ${show(id)}`)
  if (id.length > MAX_ID_LENGTH) throw invalid(index, undefined, `\`id\` is longer than ${MAX_ID_LENGTH} characters`)
  if (!id.isWellFormed())
    throw invalid(index, undefined, '`id` contains half of a surrogate pair, which is not a character')
  if (id.startsWith('#')) throw invalid(index, id, "ids that begin with '#' are reserved for tasks without an id")
}

function agentProblem(task: object, agent: unknown): string {
  if (isAgent(task)) return 'is an agent, not a task; give agent.task(input)'
  if (Array.isArray(task)) return 'is an array; give one flat array of tasks'
  if (task instanceof Promise) return 'is a Promise; await it first'
  if (agent === undefined) {
    const typo = Object.keys(task).find((key) => !KNOWN.has(key) && nearest(key, [...KNOWN]) === 'agent')
    return typo === undefined
      ? 'has no `agent`; give what defineAgent() returned'
      : `has no \`agent\`, but an unknown key '${typo}'${didYouMean(typo, ['agent'])}`
  }
  return `\`agent\` must be what defineAgent() returned, it is ${show(agent)}`
}

function checkNames(value: unknown, key: string, index: number, id: unknown): void {
  if (!Array.isArray(value) || value.some((item) => typeof item !== 'string'))
    throw invalid(index, id, `\`${key}\` must be an array of strings, it is ${show(value)}`)
}

function invalid(index: number, id: unknown, what: string): ManyworldsError {
  return new ManyworldsError('TASK_INVALID', `${nameOf(index, id)} ${what}`)
}

const nameOf = (index: number, id: unknown) => (typeof id === 'string' ? `task '${id}'` : `task ${index + 1}`)

/** Fields that most tasks do not have. */
const INFO_KEYS = ['tools', 'groundTruth', 'metadata', 'groupId'] as const

/** The packed parts of a task that are sent. */
export interface PackedTask {
  readonly input: unknown
  readonly size: number
  /** All other fields of the task, for the store. */
  readonly info: unknown
  /** The fields that its agent may see: not `groundTruth`, which is only for graders. */
  readonly shown: unknown
}

/** Packs a task. A value that cannot be sent is an error now, not in the middle of the run. */
export function packTask(task: TaskLike, index: number): PackedTask {
  let what = '`input`'
  try {
    const input = pack(task.input)
    let size = lastPackedSize(input)
    let info: Record<string, unknown> | undefined
    for (let i = 0; i < INFO_KEYS.length; i++) {
      const key = INFO_KEYS[i]!
      if (task[key] === undefined) continue
      info ??= {}
      info[key] = task[key]
    }
    if (info === undefined) return { input, size, info, shown: info }
    what = `\`${Object.keys(info).join('`, `')}\``
    const packedInfo = pack(info)
    size += lastPackedSize(packedInfo)
    return { input, size, info: packedInfo, shown: 'groundTruth' in info ? packShown(info) : packedInfo }
  } catch (error) {
    // Other errors come from the user's own data: a getter or a proxy.
    const reason = error instanceof NotPackable ? error.message : `reading it failed: ${String(error)}`
    throw new ManyworldsError(
      'INPUT_NOT_SERIALIZABLE',
      `${nameOf(index, task.id)}: its ${what} cannot be sent to a worker: ${reason}; pass plain data, and let the agent create the rest`,
      { cause: error },
    )
  }
}

function packShown({ groundTruth: _, ...shown }: Record<string, unknown>): unknown {
  for (const _ in shown) return pack(shown)
  return undefined
}

function show(value: unknown): string {
  if (typeof value === 'string') return `'${value.slice(0, 60)}'`
  if (typeof value === 'function') return 'a function'
  if (typeof value === 'number') return String(value)
  try {
    return (JSON.stringify(value) ?? String(value)).slice(0, 60)
  } catch {
    return typeof value
  }
}
