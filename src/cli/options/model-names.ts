import { readModelsFile } from '../../models/driver/models-file.ts'

/** For shell completion, which ignores errors. */
export function modelNames(): string[] {
  try {
    const { models = {}, unusable = {} } = readModelsFile() ?? {}
    return Object.keys({ ...models, ...unusable })
  } catch {
    return []
  }
}
