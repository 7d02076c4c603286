import { ManyworldsError } from '../errors.ts'
import type { EngineName, RunConfig } from '../run-config.ts'
import { engineParts } from './all-parts.ts'
import type { EngineDefinition } from './definition.ts'
import type { RuntimeEngine, RuntimeEngineClass } from './engine.ts'

type Named = { readonly [Key in 'cls' | 'engineName' | 'inLocal' | 'workerNum']?: RunConfig[Key] | undefined }

/** Makes the engine that a configuration names, or takes the one that it contains. */
export function makeEngine(config: Named): RuntimeEngine {
  if (config.cls !== undefined) return checkEngine(construct(config.cls))
  const { engineName = 'local', inLocal = false, workerNum } = config
  const options = (config as Readonly<Record<string, unknown>>)[engineName] as object | undefined
  return definitionOf(engineName).make({ options, inLocal, workerNum })
}

/** Undefined for an unknown name: it may not have been checked yet. */
export const findDefinition = (engineName: string): EngineDefinition<string, object> | undefined =>
  engineParts.find(({ name }) => name === engineName)

export const definitionOf = (engineName: EngineName): EngineDefinition<string, object> => findDefinition(engineName)!

/** Whether agents run in the driver's process, so that no worker imports them. */
export const runsInDriver = ({ cls, engineName = 'local' }: Pick<Named, 'cls' | 'engineName'>): boolean =>
  cls === undefined && findDefinition(engineName)?.inDriver === true

function construct(cls: NonNullable<RunConfig['cls']>): RuntimeEngine {
  if (typeof cls !== 'function') return cls
  // A class, or an old-style constructor function with methods on its prototype. Other functions are factories.
  const isClass =
    /^class\b/.test(Function.prototype.toString.call(cls)) ||
    (typeof cls.prototype === 'object' && cls.prototype !== null && 'start' in cls.prototype)
  try {
    return isClass ? new (cls as RuntimeEngineClass)() : (cls as () => RuntimeEngine)()
  } catch (cause) {
    if (ManyworldsError.is(cause)) throw cause
    throw new ManyworldsError(
      'ENGINE_INVALID',
      `\`engine\` (or \`cls\`) could not be made into an engine: ${cause instanceof Error ? cause.message : String(cause)}`,
      { cause },
    )
  }
}

function checkEngine(engine: RuntimeEngine): RuntimeEngine {
  const wrong = (what: string) =>
    new ManyworldsError('ENGINE_INVALID', `\`engine\` (or \`cls\`) is not a RuntimeEngine: ${what}`)
  if (typeof engine !== 'object' || engine === null) throw wrong(`it is ${engine === null ? 'null' : typeof engine}`)
  if (engine.apiVersion !== 1) throw wrong(`its apiVersion must be 1, it is ${String(engine.apiVersion)}`)
  for (const method of ['start', 'stop'] as const)
    if (typeof engine[method] !== 'function') throw wrong(`it has no ${method}()`)
  return engine
}
