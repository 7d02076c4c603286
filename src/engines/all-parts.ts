import { engines } from './all.ts'
import type { EngineDefinition } from './definition.ts'

/** The engines of `all.ts`, for those who treat them all alike. */
export const engineParts: readonly EngineDefinition<string, object, Readonly<Record<string, never>>>[] =
  engines as never
