import { afterAll } from 'vitest'
import { testEngine } from '../../dist/testing/index.js'
import { startCluster } from './cluster.ts'
import { REMOTE } from './engine.ts'

/** The conformance kit on a real cluster: a master, two workers, a Connect server with a token. */
const cluster = await startCluster()
process.env[REMOTE] = cluster.remote
afterAll(() => cluster.stop(), 60_000)

testEngine('spark', { module: new URL('./engine.ts', import.meta.url), export: 'makeSpark' })
