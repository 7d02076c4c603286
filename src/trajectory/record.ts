import type { NoteStep, StepContent, StepRecord } from './step.ts'
import { isUsage, USAGE_KEYS, type Usage, usageRange } from './usage.ts'

/** The method of a context that records steps of every kind; `ctx.step()` records only notes. */
export const RECORD: unique symbol = Symbol.for('manyworlds.record')

/** The number of steps that a context has recorded: the index of the next one. */
export const STEPS: unique symbol = Symbol.for('manyworlds.steps')

/** A context that records steps: that of a task, or of an agent inside one. */
export interface StepSink {
  [RECORD](content: StepContent): Promise<void>
  readonly [STEPS]: number
}

/**
 * The promise that `recordStep` returns if there is nothing to wait for. Callers compare with it to avoid an await for every
 * step. It is on globalThis because the agent and the worker may have two copies of this package.
 */
export const RECORDED: Promise<void> = sharedPromise()

function sharedPromise(): Promise<void> {
  const holder = globalThis as unknown as Record<symbol, Promise<void> | undefined>
  return (holder[Symbol.for('manyworlds.recorded')] ??= Promise.resolve())
}

/** The index of the next step. Recording is synchronous, so no other step can come between this call and `recordStep`. */
export const nextStep = (ctx: object): number => (ctx as StepSink)[STEPS]

/** Records a step of any kind. For agents that this package defines. */
export const recordStep = (ctx: object, content: StepContent): Promise<void> => (ctx as StepSink)[RECORD](content)

const FIELDS: Readonly<Record<keyof StepRecord, true>> = {
  action: true,
  observation: true,
  reward: true,
  usage: true,
  text: true,
  data: true,
}

/** Checks the argument of `ctx.step()` and makes a step of it. */
export function noteOf(record: StepRecord): NoteStep {
  if (typeof record !== 'object' || record === null)
    throw new TypeError('ctx.step() needs an object, such as { action, observation, reward }')
  // Check at run time, for programs without a type checker.
  for (const key in record)
    if (!Object.hasOwn(FIELDS, key))
      throw new TypeError(
        `ctx.step(): '${key}' is not a field of a step (${Object.keys(FIELDS).join(', ')}); put it under data: ctx.step({ data: { ${key}: … } })`,
      )
  const { reward, usage, text } = record
  if (text !== undefined && typeof text !== 'string')
    throw new TypeError(`ctx.step(): 'text' must be a string, it is ${shown(text)}; other values go under data`)
  if (reward !== undefined && typeof reward !== 'number')
    throw new TypeError(`ctx.step(): 'reward' must be a number, it is ${shown(reward)}`)
  if (usage === undefined) return { kind: 'note', ...record }
  return { kind: 'note', ...record, usage: checkedUsage(usage) }
}

/** The usage without undefined fields. The budget of the run counts it, so every number is checked. */
function checkedUsage(usage: Usage): Usage {
  if (typeof usage !== 'object' || usage === null)
    throw new TypeError(`ctx.step(): 'usage' must be an object, it is ${shown(usage)}`)
  const checked: Usage = {}
  for (const [key, value] of Object.entries(usage)) {
    if (!(USAGE_KEYS as readonly string[]).includes(key))
      throw new TypeError(
        `ctx.step(): 'usage.${key}' is not a field of usage (${USAGE_KEYS.join(', ')}); put it under data: ctx.step({ data: { ${key}: … } })`,
      )
    if (value === undefined) continue
    const field = key as keyof Usage
    if (!isUsage(field, value))
      throw new TypeError(`ctx.step(): 'usage.${key}' must be ${usageRange(field)}, it is ${shown(value)}`)
    checked[field] = value
  }
  return checked
}

const shown = (value: unknown) => (typeof value === 'string' ? `'${value.slice(0, 40)}'` : String(value))
