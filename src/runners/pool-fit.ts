import { engineParts } from '../engines/all-parts.ts'
import type { EngineOptions } from '../engines/names.ts'
import type { RunConfig } from '../run-config.ts'
import type { ResolvedConfig } from '../run-config-schema.ts'

/**
 * What a key of a run configuration means to workers that are kept warm for the next run:
 * - `worker`: a running worker cannot change it, so that another value needs other workers;
 * - `placement`: the same, as part of the environment that workers are started with (`runners/environment.ts`);
 * - `pool`: a pool can be told another value between two runs;
 * - `run`: it concerns the run alone.
 */
type Use = 'worker' | 'placement' | 'pool' | 'run'

/** A key that is missing here is an error of the compiler. Options of engines are `worker`, all of them. */
const USES = {
  ...{ engine: 'worker', engineName: 'worker', inLocal: 'worker', cls: 'worker', bundle: 'worker' },
  ...{ env: 'placement', showLogs: 'placement', models: 'placement' },
  ...{ workerNum: 'pool', concurrency: 'pool', recycleAfterTasks: 'pool', recycleAboveMb: 'pool' },
  ...{ sequenceDependent: 'run', timeoutMs: 'run', maxAttempts: 'run', retryIf: 'run', backoffMs: 'run' },
  ...{ backoffMaxMs: 'run', speculate: 'run', deadlineMs: 'run', signal: 'run', seed: 'run', rollouts: 'run' },
  ...{ grade: 'run', gradeTimeoutMs: 'run', maxCostUsd: 'run', maxTokens: 'run', limit: 'run', sampleSeed: 'run' },
  ...{
    runId: 'run',
    store: 'run',
    keep: 'run',
    cache: 'run',
    durability: 'run',
    resume: 'run',
    retryFailed: 'run',
    acceptChanges: 'run',
  },
  ...{ progress: 'run', onStep: 'run', services: 'run', modelsFile: 'run', limits: 'run', blobs: 'run' },
  ...{ redact: 'run', keepWarmMs: 'run' },
} as const satisfies Record<Exclude<keyof RunConfig, keyof EngineOptions>, Use>

const keysOf = (use: Use) => Object.keys(USES).filter((key) => USES[key as keyof typeof USES] === use)

const WORKER_KEYS = [...keysOf('worker'), ...engineParts.filter(({ options }) => options).map(({ name }) => name)]
const POOL_KEYS = keysOf('pool')

/** The same text for configurations whose workers are of the same kind. */
export const workerKind = (config: ResolvedConfig): string => JSON.stringify(valuesOf(config, WORKER_KEYS))

/** The same text for configurations for which a pool need not be told anything. */
export const poolShape = (config: ResolvedConfig): string => JSON.stringify(valuesOf(config, POOL_KEYS))

const valuesOf = (config: ResolvedConfig, keys: readonly string[]) =>
  keys.map((key) => {
    const value = (config as Readonly<Record<string, unknown>>)[key]
    return key === 'cls' && value ? identityOf(value as object) : value
  })

const identities = new WeakMap<object, number>()
let nextIdentity = 1

/** An engine of the user's own is the same if it is the same object. */
function identityOf(value: object): number {
  let identity = identities.get(value)
  if (identity === undefined) identities.set(value, (identity = nextIdentity++))
  return identity
}
