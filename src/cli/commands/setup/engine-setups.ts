import { engineParts } from '../../../engines/all-parts.ts'
import type { EngineSetup } from '../../../engines/cli-parts.ts'

/** The engines that need a setup, by name. */
export const setups: ReadonlyMap<string, EngineSetup> = new Map(
  engineParts.flatMap(({ name, cli }) => (cli?.setup ? [[name, cli.setup]] : [])),
)
