import { readModelsFile } from '../models/driver/models-file.ts'
import { noPrice, priceOf } from '../models/prices.ts'
import type { RunConfig } from '../run-config.ts'
import { type ResolvedConfig, resolveConfig } from '../run-config-schema.ts'
import { runHost } from './run-host.ts'

/** The checked configuration of a run, merged with that of the program around the script and with models.json. */
export function resolveRunConfig(config: RunConfig | undefined, around = runHost()): ResolvedConfig {
  const resolved = resolveConfig(around ? around.configure(config ?? {}) : config)
  refuseUnpriced(resolved)
  return withModelsFile(resolved)
}

/** Models that were given to this run are checked here; those of models.json when an agent declares or calls them. */
function refuseUnpriced({ models = {}, maxCostUsd, cache }: ResolvedConfig): void {
  if (maxCostUsd === undefined || cache === 'replay') return
  for (const [name, given] of Object.entries(models))
    if (priceOf(given) === undefined) throw noPrice(name, given, 'the run has `maxCostUsd`')
}

/** Adds the models of the file. Those of the run win. */
function withModelsFile(config: ResolvedConfig): ResolvedConfig {
  // A replay calls no model.
  const given = readModelsFile(config.modelsFile, config.cache !== 'replay')
  if (given === undefined) return config
  const { models = {} } = config
  const unusable = Object.entries(given.unusable).filter(([name]) => !Object.hasOwn(models, name))
  return { ...config, models: { ...given.models, ...models }, unusableModels: Object.fromEntries(unusable) }
}
