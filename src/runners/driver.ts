/** The driver's half of this package; see `load-driver.ts`. */
export { runsInDriver } from '../engines/make-engine.ts'
export { collect } from './collect.ts'
export { placementOf } from './environment.ts'
export { openRun } from './open-run.ts'

export { makeDispatcher, shutdownPools } from './pools.ts'
export { PushSource } from './push-source.ts'
export { resolveRunConfig } from './resolve-run-config.ts'
export { startRun } from './start-run.ts'
export { runBlocking } from './sync.ts'
