import { afterAll } from 'vitest'
import { testEngine } from '../../dist/testing/index.js'
import { startCluster } from './cluster.ts'
import { ADDRESS, TOKEN_FILE } from './engine.ts'

/** The conformance kit on a real cluster of three raylets. */
const cluster = await startCluster(3)
process.env[ADDRESS] = cluster.address
process.env[TOKEN_FILE] = cluster.tokenFile
afterAll(() => cluster.stop(), 60_000)

testEngine('ray', { module: new URL('./engine.ts', import.meta.url), export: 'makeRay' })
