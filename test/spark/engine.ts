import { SparkRuntime } from '../../dist/index.js'

/** The cluster that a test has started, for whoever has to make the engine: also a driver in another process. */
export const REMOTE = 'TEST_SPARK_REMOTE'
/** The most workers that the kit asks for. */
export const WORKERS = 4

export const makeSpark = (): SparkRuntime => new SparkRuntime({ remote: process.env[REMOTE]! })

export const makeLocalSpark = (): SparkRuntime => new SparkRuntime({}, true, WORKERS)
