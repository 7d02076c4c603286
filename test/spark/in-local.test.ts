import { afterAll } from 'vitest'
import { openServer } from '../../dist/engines/spark/server.js'
import { testEngine } from '../../dist/testing/index.js'
import { WORKERS } from './engine.ts'

/** The conformance kit on a Spark that the engine starts for itself. It is held, so that it is started once and not for every case. */
const server = await openServer({}, true, WORKERS, () => {})
afterAll(() => server.release(true), 60_000)

testEngine('spark (inLocal)', { module: new URL('./engine.ts', import.meta.url), export: 'makeLocalSpark' })
