import type { engines } from '../../engines/all.ts'
import { engineParts } from '../../engines/all-parts.ts'
import type { EngineDefinition } from '../../engines/definition.ts'
import type { Example, Option } from '../frame/command.ts'

type Definition = (typeof engines)[number]
// biome-ignore lint/suspicious/noExplicitAny: the engine's options in a RunConfig
type OptionsOf<One> = One extends EngineDefinition<string, any, infer Options> ? Options : never
type AllOf<Union> = (Union extends unknown ? (one: Union) => void : never) extends (all: infer All) => void
  ? All
  : never

/** The options of all engines, for commands that run a script. Options of different engines exclude each other. */
export const engineOptions = allOptions() as unknown as AllOf<OptionsOf<Definition>>

function allOptions(): Record<string, Option> {
  const all: Record<string, Option> = {}
  for (const { cli } of engineParts) {
    if (cli === undefined) continue
    const others = Object.keys(all)
    for (const [key, option] of Object.entries<Option>(cli.options))
      all[key] = { ...option, group: cli.group, excludes: [...(option.excludes ?? []), ...others] }
  }
  return all
}

/** Examples for the help page of a command that runs a script. */
export const engineExamples = (command: 'run' | 'train'): readonly Example[] =>
  engineParts.flatMap(({ cli }) => cli?.examples?.[command] ?? [])
