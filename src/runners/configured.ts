import type { RunConfig } from '../run-config.ts'
import { type ResolvedConfig, resolveConfig } from '../run-config-schema.ts'
import { surroundings } from './surroundings.ts'

/** The configuration of a run, checked; with what the program around the script has to say about it. */
export function configured(config: RunConfig | undefined): ResolvedConfig {
  const around = surroundings()
  return resolveConfig(around ? around.configure(config ?? {}) : config)
}
