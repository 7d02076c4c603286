import { availableParallelism } from 'node:os'
import * as z from 'zod/mini'
import { isBlob, type SharedBlob } from './blobs.ts'
import { issuesText, shownValue } from './config-issues.ts'
import type { NodesOptions } from './engines/nodes/options.ts'
import type { RayOptions } from './engines/ray/options.ts'
import type { SparkOptions } from './engines/spark/options.ts'
import { ManyworldsError } from './errors.ts'
import { isGrader } from './grade/grader.ts'
import { modelSettings, modelsSchema, splitModels } from './models/check-settings.ts'
import type { ModelsConfig } from './models/settings.ts'
import { type Secret, whyNotSecret } from './redaction/config.ts'
import { ALL_WORKERS, EngineName, type RunConfig } from './run-config.ts'
import type { ServiceFunction } from './services.ts'
import { MAX_TIMER_MS } from './task-checks.ts'

// zod's small build: it loads in half the time, and the first call of every script waits for it.
const count = (max = 1_000_000) => z.number().check(z.int(), z.minimum(1), z.maximum(max))
const milliseconds = z.number().check(z.positive(), z.maximum(MAX_TIMER_MS))
const pause = z.number().check(z.minimum(0), z.maximum(MAX_TIMER_MS))
const isEngine = (value: unknown) => typeof value === 'function' || (typeof value === 'object' && value !== null)

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
const nodes = z.strictObject({
  addresses: z.optional(words),
  token: z.optional(z.string().check(z.minLength(16), z.regex(/^\S+$/, 'must be one word'))),
  tokenFile: z.optional(text),
  tls: z.optional(
    z.union([
      z.literal(true),
      z.strictObject({
        ...{ ca: z.optional(text), cert: z.optional(text), key: z.optional(text), serverName: z.optional(text) },
      }),
    ]),
  ),
  listen: z.optional(text),
  waitMs: z.optional(pause),
})

const amount = z.number().check(z.minimum(0))
const ray = z.strictObject({
  address: z.optional(text),
  numCpus: z.optional(amount),
  numGpus: z.optional(amount),
  memory: z.optional(amount),
  resources: z.optional(z.record(z.string(), amount)),
  schedulingStrategy: z.optional(
    z.union(
      [z.enum(['DEFAULT', 'SPREAD']), z.strictObject({ nodeId: text, soft: z.optional(z.boolean()) })],
      "must be 'DEFAULT', 'SPREAD' or { nodeId, soft }",
    ),
  ),
  runtimeEnv: z.optional(
    z.strictObject({ envVars: z.optional(z.record(z.string(), z.string())), pip: z.optional(words) }),
  ),
  nodeBinary: z.optional(text),
  namespace: z.optional(text),
  token: z.optional(text),
  tokenFile: z.optional(text),
  tls: z.optional(z.strictObject({ cert: text, key: text, ca: text })),
  version: z.optional(z.string().check(z.regex(/^\d+\.\d+\.\d+\w*$/, "must be a version such as '2.60.0'"))),
  autoscaling: z.optional(z.boolean()),
})

const pems = { ca: z.optional(text), serverName: z.optional(text) }
const spark = z.strictObject({
  remote: z.optional(text),
  remoteTls: z.optional(z.strictObject({ ...pems, cert: z.optional(text), key: z.optional(text) })),
  master: z.optional(text),
  version: z.optional(z.string().check(z.regex(/^4\.\d+\.\d+\w*$/, "must be a version such as '4.3.0'"))),
  conf: z.optional(z.record(z.string(), z.union([z.string(), z.number(), z.boolean()]))),
  reserve: z.optional(z.number().check(z.int(), z.minimum(0))),
  advertiseHost: z.optional(text),
  port: z.optional(z.number().check(z.int(), z.minimum(0), z.maximum(65_535))),
  tls: z.optional(z.strictObject({ ...pems, cert: text, key: text })),
  nodeBinary: z.optional(text),
  env: z.optional(z.record(z.string(), z.string())),
  waitMs: z.optional(pause),
})

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

/** What is wrong with it is said in words; it is not shown. */
const secret = z.custom<Secret>((value) => whyNotSecret(value) === undefined, {
  error: ({ input }) => whyNotSecret(input) ?? '',
})

const keep = z.strictObject({ days: z.optional(z.number().check(z.positive())), runs: z.optional(count(1_000_000)) })

const schema = z.strictObject({
  engineName: z._default(z.enum(Object.values(EngineName)), 'local'),
  workerNum: z.optional(count(100_000)),
  concurrency: z._default(count(100_000), 64),
  inLocal: z._default(z.boolean(), false),
  nodes: z.optional(nodes),
  ray: z.optional(ray),
  spark: z.optional(spark),
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
  warmMs: z._default(pause, 60_000),
})

export type ResolvedConfig = Omit<z.output<typeof schema>, 'nodes' | 'ray' | 'spark' | 'models'> & {
  readonly models?: ModelsConfig
  /** Models of the file whose variables are not set, and what to say to those who call them. */
  readonly unusableModels?: Readonly<Record<string, string>>
  readonly workerNum: number
  readonly nodes?: NodesOptions
  readonly ray?: RayOptions
  readonly spark?: SparkOptions
}

/** Keys of a run configuration. */
export const RUN_KEYS: readonly string[] = Object.keys(schema.shape)

/** Whether it is other machines that decide how many workers there can be. */
const elsewhere = (engine: EngineName, inLocal: boolean) => engine === 'nodes' || (engine !== 'local' && !inLocal)

/** The configuration with its defaults, or one error that names every wrong key and what it may be. */
export function resolveConfig(config: RunConfig | undefined): ResolvedConfig {
  if (config !== undefined && (typeof config !== 'object' || config === null || Array.isArray(config)))
    throw new ManyworldsError(
      'CONFIG_INVALID',
      `the run configuration must be an object such as { workerNum: 4 }, it is ${config === null ? 'null' : shownValue(config)}`,
    )
  const { settings, objects } = splitModels(config?.models)
  const result = schema.safeParse(settings === undefined ? (config ?? {}) : { ...config, models: settings })
  if (!result.success)
    throw new ManyworldsError('CONFIG_INVALID', `run configuration: ${issuesText(result.error.issues, config, keysOf)}`)
  const { workerNum, engineName } = result.data
  return {
    ...(result.data as unknown as ResolvedConfig),
    ...(settings !== undefined && { models: { ...result.data.models, ...objects } as ModelsConfig }),
    workerNum: workerNum ?? (elsewhere(engineName, result.data.inLocal) ? ALL_WORKERS : availableParallelism()),
  }
}

/** The keys that a part of the configuration knows; `part` is '' for the whole of it. */
function keysOf(part: string): string[] {
  const parts: Record<string, object> = {
    ...{
      '': schema.shape,
      nodes: nodes.shape,
      ray: ray.shape,
      spark: spark.shape,
      bundle: bundle.shape,
      keep: keep.shape,
    },
  }
  return Object.keys(parts[part] ?? (/^models\.[^.]+$/.test(part) ? modelSettings.shape : {}))
}
