import { RayRuntime } from '../../dist/index.js'

/** The cluster that a test has started, for whoever has to make the engine: also a driver in another process. */
export const ADDRESS = 'TEST_RAY_ADDRESS'
export const TOKEN_FILE = 'TEST_RAY_TOKEN_FILE'

export const makeRay = (): RayRuntime =>
  new RayRuntime({ address: process.env[ADDRESS]!, tokenFile: process.env[TOKEN_FILE]!, numCpus: 1 })

export const makeLocalRay = (): RayRuntime => new RayRuntime({}, true)
