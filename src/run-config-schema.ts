import { availableParallelism } from 'node:os'
import { z } from 'zod'
import { ManyworldsError } from './errors.ts'
import { EngineName, type RunConfig } from './run-config.ts'
import { MAX_TIMER_MS } from './task-checks.ts'

// On its own, because zod takes longer to load than everything else here, and workers never need it.
const count = (max = 1_000_000) => z.number().int().min(1).max(max)
const milliseconds = z.number().positive().max(MAX_TIMER_MS)

const schema = z.strictObject({
  engineName: z.enum(Object.values(EngineName)).default('local'),
  workerNum: count(100_000).optional(),
  concurrency: count(100_000).default(64),
  inLocal: z.boolean().default(false),
  sequenceDependent: z.boolean().default(false),
  cls: z
    .custom<NonNullable<RunConfig['cls']>>(
      (value) => typeof value === 'function' || (typeof value === 'object' && value !== null),
      'must be a RuntimeEngine class',
    )
    .optional(),
  timeoutMs: milliseconds.optional(),
  maxAttempts: count(1000).default(1),
  backoffMs: z.number().min(0).max(MAX_TIMER_MS).default(200),
  backoffMaxMs: z.number().min(0).max(MAX_TIMER_MS).default(30_000),
  deadlineMs: milliseconds.optional(),
  signal: z.custom<AbortSignal>((value) => value instanceof AbortSignal, 'must be an AbortSignal').optional(),
  seed: z.number().int().default(0),
  runId: z.string().min(1).max(200).optional(),
  showLogs: z.boolean().default(false),
  recycleAfterTasks: count(1_000_000_000).optional(),
  recycleAboveMb: z.number().positive().optional(),
  env: z.record(z.string(), z.string().optional()).default({}),
  warmMs: z.number().min(0).max(MAX_TIMER_MS).default(60_000),
})

export type ResolvedConfig = z.output<typeof schema> & { readonly workerNum: number }

/** The configuration with its defaults, or one error that names every wrong key and what it may be. */
export function resolveConfig(config: RunConfig | undefined): ResolvedConfig {
  if (config !== undefined && (typeof config !== 'object' || config === null || Array.isArray(config)))
    throw new ManyworldsError(
      'CONFIG_INVALID',
      `the run configuration must be an object such as { workerNum: 4 }, it is ${Array.isArray(config) ? 'an array' : typeof config}`,
    )
  const result = schema.safeParse(config ?? {})
  if (!result.success)
    throw new ManyworldsError('CONFIG_INVALID', `run configuration: ${result.error.issues.map(say).join('; ')}`)
  return { ...result.data, workerNum: result.data.workerNum ?? availableParallelism() }

  function say(issue: z.core.$ZodIssue): string {
    const key = issue.path.join('.')
    const given = `it is ${show(issue.path.reduce<unknown>((value, part) => (value as Record<PropertyKey, unknown>)?.[part], config))}`
    switch (issue.code) {
      case 'unrecognized_keys':
        return issue.keys
          .map(
            (unknown) =>
              `unknown key '${unknown}'${suggestion(unknown)}; allowed: ${Object.keys(schema.shape).join(', ')}`,
          )
          .join('; ')
      case 'invalid_value':
        return `\`${key}\` must be one of ${issue.values.map((value) => `'${String(value)}'`).join(', ')}, ${given}`
      case 'too_small':
        return `\`${key}\` must be ${issue.inclusive ? 'at least' : 'more than'} ${issue.minimum}${unit(key)}, ${given}`
      case 'too_big':
        return `\`${key}\` must be at most ${issue.maximum}${unit(key)}, ${given}`
      case 'invalid_type':
        return `\`${key}\` must be ${issue.expected === 'int' ? 'a whole number' : `a ${issue.expected}`}, ${given}`
      default:
        return `\`${key}\` ${issue.message}, ${given}`
    }
  }
}

const unit = (key: string) => (key.endsWith('Ms') ? ' milliseconds' : '')

function show(value: unknown): string {
  if (typeof value === 'string') return `'${value}'`
  if (typeof value === 'object' && value !== null) return Array.isArray(value) ? 'an array' : 'an object'
  return typeof value === 'function' ? 'a function' : String(value)
}

/** The allowed key that the user probably meant: the same but for case, `_`, or two letters; or AWorld's name for it. */
function suggestion(unknown: string): string {
  const plain = (text: string) => text.toLowerCase().replaceAll(/[_-]/g, '')
  const near = Object.keys(schema.shape).find((key) => distance(plain(key), plain(unknown)) <= 2)
  return near === undefined ? '' : `, did you mean '${near}'?`
}

function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++)
      next.push(Math.min(next[j - 1]! + 1, row[j]! + 1, row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)))
    row = next
  }
  return row[b.length]!
}
