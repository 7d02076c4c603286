import { engines } from './all.ts'
import type { EngineDefinition } from './definition.ts'

/** The engines of `all.ts`, for code that treats all engines alike. */
export const engineParts: readonly EngineDefinition<string, object, Readonly<Record<string, never>>>[] =
  engines as never
