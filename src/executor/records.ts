import type { Redactor } from '../redaction/redactor.ts'
import { redactSteps } from '../redaction/steps.ts'
import { checkStep, type PackedStep, packedStepSize } from '../trajectory/packed-step.ts'
import { MOST_STEPS, STEP_KINDS } from '../trajectory/step.ts'
import { addUsage, USAGE_KEYS, type Usage } from '../trajectory/usage.ts'
import type { AttemptRecords, Lease, TaskEntry } from './task-entry.ts'

const MODEL_STEP = STEP_KINDS.indexOf('model')

/**
 * Adds the steps and printed lines of an attempt, even of a late or second one. Returns the lines without secrets. Throws if
 * the records are malformed, which ends the worker that sent them.
 */
export function addRecords(lease: Lease, said: PackedStep[], printed: string[]): readonly string[] {
  const { entry } = lease
  for (const step of said) checkStep(step)
  const records = recordsOf(lease)
  if (records.count + said.length > MOST_STEPS) throw new RangeError(`an attempt with more than ${MOST_STEPS} steps`)
  const { redactor } = entry.run.options
  const logs = redactor ? printed.map((line) => redactor.text(line)) : printed
  if (logs.length > 0) records.logs = records.logs === undefined ? logs : append(records.logs, logs)
  if (said.length === 0) return logs
  const steps = redactor ? redactedSteps(redactor, said, records) : said
  for (const [, , kind, , usage] of steps) {
    if (!usage) continue
    addUsage((records.usage ??= {}), usage)
    const spent = kind === MODEL_STEP ? newlyPaid(lease, records.modelUsage, usage) : usage
    addUsage(entry.run.usage, spent)
    entry.run.options.budget?.spend(spent, rootOf(entry).index)
  }
  const { recorder, options } = entry.run
  const bytes = stepBytes(said)
  if (recorder && !entry.run.over) recorder.steps(lease, steps, bytes)
  else lease.worker.stored(bytes)
  records.count += steps.length
  // The responses that a parent gets include the steps of its sub-tasks.
  if (options.keepSteps || entry.parent)
    records.steps = records.steps === undefined ? steps : append(records.steps, steps)
  return logs
}

/** The part of a call's usage that was not paid for in an earlier run of the same attempt. Adds the usage to `ofLease`. */
function newlyPaid({ entry, attempt }: Lease, ofLease: Usage, usage: Usage): Usage {
  if (entry.paid?.attempt !== attempt) entry.paid = { attempt, usage: {} }
  const paid = entry.paid.usage
  const fresh: Usage = {}
  for (const key of USAGE_KEYS) {
    const value = usage[key]
    if (value === undefined) continue
    const before = ofLease[key] ?? 0
    const already = paid[key] ?? 0
    ofLease[key] = before + value
    fresh[key] = already <= before ? value : Math.max(0, before + value - already)
    paid[key] = Math.max(already, before + value)
  }
  return fresh
}

function rootOf(entry: TaskEntry): TaskEntry {
  let root = entry
  while (root.parent) root = root.parent
  return root
}

function redactedSteps(redactor: Redactor, steps: PackedStep[], records: AttemptRecords): PackedStep[] {
  const redacted = records.redacted ?? new Set()
  const clean = redactSteps(redactor, steps, records.count, redacted)
  if (redacted.size > 0) records.redacted = redacted
  return clean
}

/** Counts bytes as the worker does. */
export function stepBytes(steps: readonly PackedStep[]): number {
  let bytes = 0
  for (const step of steps) bytes += packedStepSize(step)
  return bytes
}

export function recordsOf(lease: Lease): AttemptRecords {
  if (lease.records === undefined) {
    lease.records = { steps: undefined, count: 0, usage: undefined, modelUsage: {}, logs: undefined, start: 0 }
    const { entry } = lease
    if (lease === entry.lease) entry.records = lease.records
  }
  return lease.records
}

/** One by one: `push(...items)` overflows the stack with a hundred thousand items. */
function append<T>(list: T[], more: readonly T[]): T[] {
  for (const item of more) list.push(item)
  return list
}
