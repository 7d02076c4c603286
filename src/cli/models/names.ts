import { readModelsFile } from '../../models/driver/models-file.ts'

/** For the tab key, which has no use for errors. */
export function modelNames(): string[] {
  try {
    const { models = {}, unusable = {} } = readModelsFile() ?? {}
    return Object.keys({ ...models, ...unusable })
  } catch {
    return []
  }
}
