import type { RunConfig } from '../../run-config.ts'
import type { TypedModels } from '../models/typed-models.ts'
import type { RunArgs } from '../specs/run.ts'
import type { TrainArgs } from '../specs/train.ts'
import { engineOf } from './engine.ts'
import { modelsOf } from './model-options.ts'
import type { Naming } from './naming.ts'
import { nodesOf } from './node-options.ts'
import { rayOf } from './ray-options.ts'
import { sparkOf } from './spark-options.ts'

/** Options that `run` and `train` have, and those that only `run` has. */
type Given = Pick<RunArgs, keyof RunArgs & keyof TrainArgs> & Partial<RunArgs>

/** What makes the configuration of each run of a script: what was typed over what the script gives. */
export function typedConfig(args: Given, models: TypedModels, naming: Naming): (config: RunConfig) => RunConfig {
  const typed = overrides(args)
  return (config) => {
    const { cls, ...script } = config
    // An engine that the script brings along would go before one that is named.
    const own = typed.engineName === undefined && cls !== undefined ? { cls } : {}
    const wanted = { ...script, ...own, ...typed }
    const places = { ...nodesOf(args, wanted), ...rayOf(args, wanted), ...sparkOf(args, wanted) }
    return { ...wanted, ...modelsOf(models, wanted), ...places, ...naming.name(config), progress: false }
  }
}

/** The options of the command line as a run configuration: those that were given. */
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

/** Who names a cluster wants none that is started here, although the script may say so. */
function inLocalOf({ inLocal, rayAddress, sparkRemote }: Given): boolean | undefined {
  if (inLocal) return true
  return rayAddress === undefined && sparkRemote === undefined ? undefined : false
}
