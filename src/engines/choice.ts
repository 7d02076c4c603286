import type { EngineName, RunConfig } from '../run-config.ts'

/** An engine and its options, as returned by `ray({ … })` and the like. Making one loads and starts nothing. */
export interface EngineChoice<Name extends EngineName = EngineName> {
  readonly engineName: Name
  readonly inLocal?: boolean
}

/** For engines on a cluster: start a small one on this machine, for tests. */
export interface StartsLocally {
  readonly inLocal?: boolean
}

/** The description is made of the keys of a RunConfig: the engine's name, its options under that name, and `inLocal`. */
export function describeEngine<Name extends EngineName>(
  engineName: Name,
  { inLocal, ...options }: StartsLocally & object = {},
): EngineChoice<Name> {
  return Object.freeze({
    engineName,
    ...(inLocal !== undefined && { inLocal }),
    ...(Object.keys(options).length > 0 && { [engineName]: Object.freeze(options) }),
  })
}

/** The older keys of a RunConfig with the same meaning as `engine`; undefined if `engine` is not valid. */
export function engineKeys(engine: unknown): RunConfig | undefined {
  if (typeof engine === 'string') return { engineName: engine as EngineName }
  if (typeof engine === 'function') return { cls: engine as NonNullable<RunConfig['cls']> }
  if (typeof engine !== 'object' || engine === null) return undefined
  return 'engineName' in engine ? (engine as RunConfig) : { cls: engine as NonNullable<RunConfig['cls']> }
}
