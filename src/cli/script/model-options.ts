import { readModelsFile } from '../../models/driver/models-file.ts'
import type { RunConfig } from '../../run-config.ts'
import type { RunArgs } from '../commands/run/spec.ts'
import { type TypedModels, typedModels, withTyped } from '../options/typed-models.ts'

/** What was typed about models; mistakes in it, and in the file that it names, are said before the script begins. */
export function readTypedModels({ model, models }: Pick<RunArgs, 'model' | 'models'>): TypedModels {
  if (models !== undefined) readModelsFile(models)
  return typedModels(model)
}

/** What is wrong with the models of the script is said where configurations are checked. */
export function modelsOf(typed: TypedModels, { models = {}, modelsFile }: RunConfig): Pick<RunConfig, 'models'> {
  if (typeof models !== 'object' || models === null || Array.isArray(models)) return {}
  const all = withTyped(typed, models, modelsFile)
  return Object.keys(all).length === 0 ? {} : { models: all }
}
