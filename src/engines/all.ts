import { inlineEngine } from './inline/definition.ts'
import { localEngine } from './local/definition.ts'
import { nodesEngine } from './nodes/definition.ts'
import { rayEngine } from './ray/definition.ts'
import { sparkEngine } from './spark/definition.ts'

/**
 * The engines of this package, in the order in which they are listed to users. To add one: a folder with a definition, and a
 * line here. The compiler then asks for its name in `EngineName` and, if it has options, for its key in `RunConfig`.
 */
export const engines = [localEngine, nodesEngine, rayEngine, sparkEngine, inlineEngine] as const
