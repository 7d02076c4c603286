import { readModelsFile } from '../models/driver/models-file.ts'
import type { RunConfig } from '../run-config.ts'
import { type ResolvedConfig, resolveConfig } from '../run-config-schema.ts'
import { runHost } from './run-host.ts'

/** The checked configuration of a run, merged with that of the program around the script and with models.json. */
export function resolveRunConfig(config: RunConfig | undefined, around = runHost()): ResolvedConfig {
  return withModelsFile(resolveConfig(around ? around.configure(config ?? {}) : config))
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
