import { readModelsFile } from '../../models/driver/models-file.ts'
import type { RunConfig } from '../../run-config.ts'
import type { RunArgs } from '../commands/run/spec.ts'
import { type TypedModels, typedModels, withTyped } from '../options/typed-models.ts'

/** Reads the typed models. Mistakes in them, and in the models file, are reported before the script starts. */
export function readTypedModels({ model, models }: Pick<RunArgs, 'model' | 'models'>): TypedModels {
  if (models !== undefined) readModelsFile(models)
  return typedModels(model)
}

/**
 * Adds the typed models to those of the script. Mistakes in the script's own models are reported when its configuration
 * is checked.
 */
export function modelsOf(typed: TypedModels, { models = {}, modelsFile }: RunConfig): Pick<RunConfig, 'models'> {
  if (typeof models !== 'object' || models === null || Array.isArray(models)) return {}
  const all = withTyped(typed, models, modelsFile)
  return Object.keys(all).length === 0 ? {} : { models: all }
}
