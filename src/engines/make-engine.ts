import { ManyworldsError } from '../errors.ts'
import type { RunConfig } from '../run-config.ts'
import type { RuntimeEngine, RuntimeEngineClass } from './engine.ts'
import { LocalRuntime } from './local.ts'
import { NodesRuntime } from './nodes/nodes-runtime.ts'
import { RayRuntime } from './ray/ray-runtime.ts'
import { SparkRuntime } from './spark/spark-runtime.ts'

/** The engine that a configuration names, or brings along. */
export function makeEngine(config: {
  readonly cls?: RunConfig['cls'] | undefined
  readonly engineName?: RunConfig['engineName']
  readonly nodes?: RunConfig['nodes']
  readonly ray?: RunConfig['ray']
  readonly spark?: RunConfig['spark']
  readonly inLocal?: RunConfig['inLocal']
  readonly workerNum?: RunConfig['workerNum']
}): RuntimeEngine {
  if (config.cls !== undefined) return checkEngine(construct(config.cls))
  switch (config.engineName) {
    case undefined:
    case 'local':
      return new LocalRuntime()
    case 'nodes':
      return new NodesRuntime(config.nodes)
    case 'ray':
      return new RayRuntime(config.ray, config.inLocal)
    case 'spark':
      return new SparkRuntime(config.spark, config.inLocal, config.workerNum)
  }
}

function construct(cls: NonNullable<RunConfig['cls']>): RuntimeEngine {
  if (typeof cls !== 'function') return cls
  // What is written as a class is one; of other functions, those with methods to inherit.
  const isClass =
    /^class\b/.test(Function.prototype.toString.call(cls)) ||
    (typeof cls.prototype === 'object' && cls.prototype !== null && 'start' in cls.prototype)
  try {
    return isClass ? new (cls as RuntimeEngineClass)() : (cls as () => RuntimeEngine)()
  } catch (cause) {
    throw new ManyworldsError(
      'ENGINE_INVALID',
      `\`cls\` could not be made into an engine: ${cause instanceof Error ? cause.message : String(cause)}`,
      { cause },
    )
  }
}

function checkEngine(engine: RuntimeEngine): RuntimeEngine {
  const wrong = (what: string) => new ManyworldsError('ENGINE_INVALID', `\`cls\` is not a RuntimeEngine: ${what}`)
  if (typeof engine !== 'object' || engine === null) throw wrong(`it made ${engine === null ? 'null' : typeof engine}`)
  if (engine.apiVersion !== 1) throw wrong(`its apiVersion must be 1, it is ${String(engine.apiVersion)}`)
  for (const method of ['start', 'stop'] as const)
    if (typeof engine[method] !== 'function') throw wrong(`it has no ${method}()`)
  return engine
}
