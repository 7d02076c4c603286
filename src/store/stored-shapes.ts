import type { TaskStatus } from '../task.ts'
import type { Step } from '../trajectory/step.ts'
import type { Usage } from '../trajectory/usage.ts'

/**
 * Checks of stored values. SQLite allows any type in any column, and a file may be hostile, so every row is checked before
 * it is used. Callers turn the errors thrown here into `STORE_CORRUPT`.
 */
type Test = (value: unknown) => boolean
export type Columns<Row> = { readonly [Column in keyof Row]-?: Test }

/** The largest time that a `Date` can hold. */
const MAX_TIME_MS = 8.64e15

export const isText: Test = (value) => typeof value === 'string'
export const isWhole: Test = (value) => Number.isSafeInteger(value) && (value as number) >= 0
export const isNumber: Test = (value) => Number.isFinite(value)
export const isTime: Test = (value) => Number.isFinite(value) && Math.abs(value as number) <= MAX_TIME_MS
export const isBytes: Test = (value) => value instanceof Uint8Array
/** For values that are checked when they are decoded. */
export const isAnything: Test = () => true
export const orNull =
  (test: Test): Test =>
  (value) =>
    value === null || test(value)
export const oneOf =
  (...values: readonly unknown[]): Test =>
  (value) =>
    values.includes(value)

const STATUSES: readonly TaskStatus[] = ['success', 'failed', 'timeout', 'crashed', 'cancelled']
export const isStatus: Test = oneOf(...STATUSES)

/** Returns the row if all its columns pass. */
export function checkedRow<Row extends object>(row: unknown, columns: Columns<Row>, what: string): Row {
  for (const column in columns) {
    const value = (row as Row)[column]
    if (!columns[column](value)) throw new Error(`\`${column}\` of ${what} is ${shown(value)}`)
  }
  return row as Row
}

function shown(value: unknown): string {
  if (value instanceof Uint8Array) return `a blob of ${value.length} bytes`
  return typeof value === 'string' ? `the text ${JSON.stringify(value.slice(0, 40))}` : String(value)
}

/** The steps of version 1, all of which are notes. */
export function oldStepsOf(value: unknown): Step[] {
  if (value === undefined) return []
  if (!isList(value, (step) => isFields(step) && isNumber(step.index) && isNumber(step.atMs)))
    throw new Error('a trajectory is not a list of steps')
  return (value as Step[]).map((step) => ({ ...step, kind: 'note' }) as Step)
}

export function linesOf(value: unknown): string[] {
  if (value === undefined) return []
  if (!isList(value, isText)) throw new Error('logs are not a list of lines')
  return value as string[]
}

export function idsOf(json: string): string[] {
  const ids: unknown = JSON.parse(json)
  if (!isList(ids, isText)) throw new Error('`depends_on` is not a list of ids')
  return ids as string[]
}

/** Agents may report anything as usage: drop what is not a number. */
export function usageOf(json: string | null): Usage {
  const fields: unknown = json === null ? {} : JSON.parse(json)
  if (!isFields(fields)) throw new Error('`usage` is not an object')
  const { inputTokens, outputTokens, cachedTokens, costUsd } = fields
  const known = Object.entries({ inputTokens, outputTokens, cachedTokens, costUsd })
  return Object.fromEntries(known.filter(([, value]) => isNumber(value))) as Usage
}

export function isFields(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Not `every`, which skips holes: a sparse array may have billions. */
function isList(value: unknown, isItem: Test): boolean {
  if (!Array.isArray(value)) return false
  for (let i = 0; i < value.length; i++) if (!isItem(value[i])) return false
  return true
}
