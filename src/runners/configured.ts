import { readModelsFile } from '../models/driver/models-file.ts'
import type { RunConfig } from '../run-config.ts'
import { type ResolvedConfig, resolveConfig } from '../run-config-schema.ts'
import { surroundings } from './surroundings.ts'

/** The configuration of a run, checked; with what the program around it and the file of models have to say about it. */
export function configured(config: RunConfig | undefined, around = surroundings()): ResolvedConfig {
  return withModelsFile(resolveConfig(around ? around.configure(config ?? {}) : config))
}

/** The models of the file, below those of the run. */
function withModelsFile(config: ResolvedConfig): ResolvedConfig {
  // Who replays calls nobody.
  const given = readModelsFile(config.modelsFile, config.cache !== 'replay')
  if (given === undefined) return config
  const { models = {} } = config
  const unusable = Object.entries(given.unusable).filter(([name]) => !Object.hasOwn(models, name))
  return { ...config, models: { ...given.models, ...models }, unusableModels: Object.fromEntries(unusable) }
}
