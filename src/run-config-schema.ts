import { availableParallelism } from 'node:os'
import * as z from 'zod/mini'
import { isBlob, type SharedBlob } from './blobs.ts'
import { issuesText, shownValue } from './config-issues.ts'
import { engineParts } from './engines/all-parts.ts'
import { definitionOf } from './engines/make-engine.ts'
import type { EngineOptions } from './engines/names.ts'
import { spreadEngine } from './engines/spread-engine.ts'
import { ManyworldsError } from './errors.ts'
import { isGrader } from './grade/grader.ts'
import { modelSettings, modelsSchema, splitModels } from './models/check-settings.ts'
import type { ModelsConfig } from './models/settings.ts'
import { type Secret, whyNotSecret } from './redaction/config.ts'
import { ALL_WORKERS, type EngineName, type RunConfig } from './run-config.ts'
import type { ServiceFunction } from './services.ts'
import { MAX_TIMER_MS } from './task-checks.ts'

// zod's small build: it loads in half the time, and the first call of every script waits for it.
const count = (max = 1_000_000) => z.number().check(z.int(), z.minimum(1), z.maximum(max))
const milliseconds = z.number().check(z.positive(), z.maximum(MAX_TIMER_MS))
const pause = z.number().check(z.minimum(0), z.maximum(MAX_TIMER_MS))
const isEngine = (value: unknown) => typeof value === 'function' || (typeof value === 'object' && value !== null)

const NO_ENGINE = `must be one of ${engineParts.map(({ name }) => `'${name}'`).join(', ')}, a choice such as nodes({ … }), or an engine of your own`
const PROGRESS = 'must be true, false or a function'
type ProgressListener = Exclude<NonNullable<RunConfig['progress']>, boolean>
// It names a file.
const runId = z
  .string()
  .check(
    z.minLength(1),
    z.maxLength(128),
    z.regex(
      /^[A-Za-z0-9][\w.-]*$/,
      'must begin with a letter or digit, and have only letters, digits, ".", "_" and "-"',
    ),
  )

const words = z.array(z.string().check(z.minLength(1)))
const text = z.string().check(z.minLength(1))
const bundle = z.strictObject({ files: z.optional(words), external: z.optional(words) })
/** The options of engines, each under the engine's name. */
const engineSchemas = Object.fromEntries(
  engineParts.flatMap(({ name, options }) =>
    options === undefined ? [] : [[name, z.strictObject(options({ z, text, words, pause }))]],
  ),
)
const engineNames = engineParts.map(({ name }) => name) as EngineName[]

const SERVICE_NAME = /^(?!manyworlds\.).{1,256}$/s
const NAMED = "must have 1 to 256 characters, and not begin with 'manyworlds.'"
const isFunction = (value: unknown) => typeof value === 'function'
const service = z.union(
  [
    z.custom<ServiceFunction>(isFunction),
    z.strictObject({
      answer: z.custom<ServiceFunction>(isFunction),
      durable: z.optional(z.boolean()),
      atOnce: z.optional(count(1_000_000)),
    }),
  ],
  'must be a function, or { answer, durable, atOnce } with a function as its answer',
)

const LIMIT_NAMED = 'must have 1 to 256 characters'
const often = z.number().check(z.positive(), z.maximum(1_000_000_000))
const limit = z.union(
  [z.strictObject({ perSecond: often }), z.strictObject({ perMinute: often }), z.strictObject({ perHour: often })],
  'must be one of { perSecond }, { perMinute } and { perHour }, with a number above 0',
)

// A name of 64 hexadecimal digits could be a hash.
const BLOB_NAME = /^(?![0-9a-f]{64}$).{1,256}$/s
const BLOB_NAMED = 'must have 1 to 256 characters, and not be a SHA-256'
const blob = z.custom<Uint8Array | SharedBlob>(isBlob, 'must be a Uint8Array of less than 4 GiB, or a SharedBlob')

/** Errors say what is wrong with a secret but never show it. */
const secret = z.custom<Secret>((value) => whyNotSecret(value) === undefined, {
  error: ({ input }) => whyNotSecret(input) ?? '',
})

const keep = z.strictObject({ days: z.optional(z.number().check(z.positive())), runs: z.optional(count(1_000_000)) })

/** Its keys and types are those of `RunConfig`; test/types/run-config-schema.ts checks that. */
export const schema = z.strictObject({
  engine: z.optional(z.custom<NonNullable<RunConfig['engine']>>(() => false, NO_ENGINE)),
  engineName: z._default(z.enum(engineNames), 'local'),
  workerNum: z.optional(count(100_000)),
  concurrency: z._default(count(100_000), 64),
  inLocal: z._default(z.boolean(), false),
  ...(Object.fromEntries(Object.entries(engineSchemas).map(([name, own]) => [name, z.optional(own)])) as unknown as {
    // The compiler cannot know what is in each; `resolveConfig` gives them their types.
    readonly [Name in keyof EngineOptions]: z.ZodMiniOptional<z.ZodMiniType<EngineOptions[Name], EngineOptions[Name]>>
  }),
  bundle: z._default(bundle, {}),
  sequenceDependent: z._default(z.boolean(), false),
  cls: z.optional(z.custom<NonNullable<RunConfig['cls']>>(isEngine, 'must be a RuntimeEngine class')),
  timeoutMs: z.optional(milliseconds),
  maxAttempts: z.optional(count(1000)),
  retryIf: z.optional(z.custom<NonNullable<RunConfig['retryIf']>>(isFunction, 'must be a function')),
  backoffMs: z._default(pause, 200),
  backoffMaxMs: z._default(pause, 30_000),
  speculate: z._default(z.boolean(), false),
  deadlineMs: z.optional(milliseconds),
  signal: z.optional(z.custom<AbortSignal>((value) => value instanceof AbortSignal, 'must be an AbortSignal')),
  seed: z._default(z.number().check(z.int()), 0),
  rollouts: z.optional(count(100_000)),
  grade: z.optional(z.custom<NonNullable<RunConfig['grade']>>(isGrader, 'must be a grader such as exactMatch()')),
  gradeTimeoutMs: z._default(milliseconds, 60_000),
  maxCostUsd: z.optional(z.number().check(z.positive())),
  maxTokens: z.optional(count(Number.MAX_SAFE_INTEGER)),
  limit: z.optional(count(1_000_000_000)),
  sampleSeed: z.optional(z.number().check(z.int())),
  runId: z.optional(runId),
  store: z.optional(z.union([z.literal(false), z.string().check(z.minLength(1))], 'must be a path, or false')),
  keep: z.optional(keep),
  cache: z._default(z.union([z.boolean(), z.literal('replay')], "must be true, false or 'replay'"), false),
  durability: z._default(z.enum(['normal', 'full']), 'normal'),
  resume: z.optional(runId),
  retryFailed: z._default(z.boolean(), false),
  acceptChanges: z._default(z.boolean(), false),
  progress: z._default(
    z.union([z.boolean(), z.custom<ProgressListener>((value) => typeof value === 'function')], PROGRESS),
    false,
  ),
  onStep: z.optional(
    z.custom<NonNullable<RunConfig['onStep']>>((value) => typeof value === 'function', 'must be a function'),
  ),
  services: z.optional(z.record(z.string().check(z.regex(SERVICE_NAME, NAMED)), service)),
  models: z.optional(modelsSchema),
  limits: z.optional(z.record(z.string().check(z.regex(/^.{1,256}$/s, LIMIT_NAMED)), limit)),
  modelsFile: z.optional(z.union([z.literal(false), text], 'must be a path, or false')),
  blobs: z.optional(z.record(z.string().check(z.regex(BLOB_NAME, BLOB_NAMED)), blob)),
  redact: z._default(z.array(secret), []),
  showLogs: z._default(z.boolean(), false),
  recycleAfterTasks: z.optional(count(1_000_000_000)),
  recycleAboveMb: z.optional(z.number().check(z.positive())),
  env: z._default(z.record(z.string(), z.optional(z.string())), {}),
  keepWarmMs: z._default(pause, 60_000),
})

export type ResolvedConfig = Omit<z.output<typeof schema>, keyof EngineOptions | 'engine' | 'models'> & {
  readonly models?: ModelsConfig
  /** Models of the file whose environment variables are not set, with the error for tasks that call them. */
  readonly unusableModels?: Readonly<Record<string, string>>
  readonly workerNum: number
} & { readonly [Name in keyof EngineOptions]?: EngineOptions[Name] }

/** Keys of a run configuration. */
export const RUN_KEYS: readonly string[] = Object.keys(schema.shape)

/** The default number of workers. On other machines, the engine decides how many there can be. */
function workersOf({
  engineName,
  inLocal,
  workerNum,
}: Pick<z.output<typeof schema>, 'engineName' | 'inLocal' | 'workerNum'>) {
  const { workers, startsLocally } = definitionOf(engineName)
  if (typeof workers === 'number') return workers
  const here = workers === 'cores' || (startsLocally && inLocal)
  return workerNum ?? (here ? availableParallelism() : ALL_WORKERS)
}

/** The configuration with its defaults, or one error that names every wrong key and what it may be. */
export function resolveConfig(config: RunConfig | undefined): ResolvedConfig {
  if (config !== undefined && (typeof config !== 'object' || config === null || Array.isArray(config)))
    throw new ManyworldsError(
      'CONFIG_INVALID',
      `the run configuration must be an object such as { workerNum: 4 }, it is ${config === null ? 'null' : shownValue(config)}`,
    )
  const { settings, objects } = splitModels(config?.models)
  const spread = spreadEngine(config ?? {})
  const result = schema.safeParse(settings === undefined ? spread : { ...spread, models: settings })
  if (!result.success)
    throw new ManyworldsError('CONFIG_INVALID', `run configuration: ${issuesText(result.error.issues, spread, keysOf)}`)
  const { engine: _, ...data } = result.data
  if (data.inLocal && data.cls === undefined && !definitionOf(data.engineName).startsLocally)
    throw new ManyworldsError('CONFIG_INVALID', inLocalRefused(data.engineName))
  return {
    ...(data as unknown as ResolvedConfig),
    ...(settings !== undefined && { models: { ...data.models, ...objects } as ModelsConfig }),
    workerNum: workersOf(data),
  }
}

function inLocalRefused(engine: EngineName): string {
  const able = engineParts.filter(({ startsLocally }) => startsLocally).map(({ name }) => `${name}()`)
  return `run configuration: \`inLocal: true\` starts a cluster on this machine, which the engine '${engine}' does not use; set \`engine\` to ${able.join(' or ')}, or leave \`inLocal\` out`
}

/** The keys that are allowed in a part of the configuration; `part` is '' for the whole of it. */
function keysOf(part: string): string[] {
  const objects = { ...engineSchemas, bundle, keep }
  const parts: Record<string, object> = { '': schema.shape }
  for (const [name, { shape }] of Object.entries(objects)) parts[name] = shape
  return Object.keys(parts[part] ?? (/^models\.[^.]+$/.test(part) ? modelSettings.shape : {}))
}
