import { engineParts } from '../../engines/all-parts.ts'
import { findDefinition } from '../../engines/make-engine.ts'
import { spreadEngine } from '../../engines/spread-engine.ts'
import type { RunConfig } from '../../run-config.ts'
import type { RunArgs } from '../commands/run/spec.ts'
import type { TrainArgs } from '../commands/train/spec.ts'
import { UsageError } from '../frame/usage-error.ts'
import type { TypedModels } from '../options/typed-models.ts'
import { engineOf, namesCluster } from './engine.ts'
import { typedEnv } from './env-options.ts'
import { modelsOf } from './model-options.ts'
import type { Naming } from './naming.ts'

/** Options that `run` and `train` have, and those that only `run` has. */
type Given = Pick<RunArgs, keyof RunArgs & keyof TrainArgs> & Partial<RunArgs>

/** Makes the configuration of each run: options of the command line override those of the script. */
export function typedConfig(args: Given, models: TypedModels, naming: Naming): (config: RunConfig) => RunConfig {
  const typed = overrides(args)
  const env = typedEnv(args.env)
  if (typed.engineName !== undefined) refuseInLocal(args, typed)
  return (config) => {
    const { cls, ...script } = spreadEngine(config)
    // `cls` of the script would take precedence over the engine that was typed.
    const own = typed.engineName === undefined && cls !== undefined ? { cls } : {}
    const wanted = { ...script, ...own, ...typed, ...(args.env.length > 0 && { env: { ...script.env, ...env } }) }
    refuseInLocal(args, wanted)
    const { cli } = findDefinition(wanted.engineName ?? 'local') ?? {}
    const place = cli?.configure?.(args, wanted) ?? {}
    return { ...wanted, ...modelsOf(models, wanted), ...place, ...naming.name(config), progress: false }
  }
}

/** The typed options as a run configuration. */
function overrides(args: Given): RunConfig {
  const given = {
    engineName: engineOf(args),
    workerNum: args.workers,
    inLocal: inLocalOf(args),
    concurrency: args.concurrency,
    timeoutMs: args.timeout,
    maxAttempts: args.maxAttempts,
    deadlineMs: args.deadline,
    maxCostUsd: args.maxCost,
    maxTokens: args.maxTokens,
    rollouts: args.rollouts,
    seed: args.seed,
    limit: args.limit,
    sampleSeed: args.sampleSeed,
    store: args.noStore ? (false as const) : args.store,
    durability: args.durability,
    cache: args.replay ? ('replay' as const) : args.cache || undefined,
    showLogs: args.showLogs || undefined,
    modelsFile: args.models,
  }
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as RunConfig
}

/** Without `--engine`, the engine is that of the script. */
function refuseInLocal({ inLocal }: Given, { engineName = 'local', cls }: RunConfig): void {
  if (!inLocal || cls !== undefined || findDefinition(engineName)?.startsLocally) return
  const names = engineParts.filter(({ startsLocally }) => startsLocally).map(({ name }) => `--engine ${name}`)
  throw new UsageError(`--in-local can only be used with ${names.join(' or ')}; the engine is ${engineName}`)
}

/** If a cluster is named, none is started on this machine, even if the script asks for one. */
function inLocalOf(args: Given): boolean | undefined {
  if (args.inLocal) return true
  return namesCluster(args) ? false : undefined
}
