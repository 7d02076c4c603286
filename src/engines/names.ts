import type { engines } from './all.ts'
import type { EngineDefinition } from './definition.ts'

type Definition = (typeof engines)[number]

// biome-ignore lint/suspicious/noExplicitAny: the options of the command line are of no concern here
type OptionsOf<One> = One extends EngineDefinition<string, infer Options, any> ? Options : never

/** The engines of this package. */
export type EngineName = Definition['name']

/** The types of the engines' options, by name of the engine. */
export type EngineOptions = {
  [One in Definition as [OptionsOf<One>] extends [never] ? never : One['name']]: OptionsOf<One>
}
