/** The driver's half of this package; see `driver-side.ts`. */
export { collect } from './collect.ts'
export { configured } from './configured.ts'
export { placementOf } from './environment.ts'
export { openRun } from './open-run.ts'
export { makeDispatcher, shutdownPools } from './pools.ts'
export { PushSource } from './push-source.ts'
export { startRun } from './start-run.ts'
export { runBlocking } from './sync.ts'
