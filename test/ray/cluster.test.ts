import { afterAll, beforeAll, describe } from 'vitest'
import { testEngine } from '../../dist/testing/index.js'
import { IN_STORM } from '../support/storm.ts'
import { startCluster } from './cluster.ts'
import { ADDRESS, TOKEN_FILE } from './engine.ts'
import { testErrors, testSlowErrors } from './errors.ts'
import { testFaults } from './faults.ts'

/**
 * Everything that needs a real cluster, on one: a raylet takes five seconds of a core to start. In the storm it has three raylets,
 * and not much is left of it afterwards.
 */
const cluster = IN_STORM ? await startCluster(1) : await startCluster(1, 6)
process.env[ADDRESS] = cluster.address
process.env[TOKEN_FILE] = cluster.tokenFile
afterAll(() => cluster.stop(), 60_000)

const engine = { module: new URL('./engine.ts', import.meta.url), export: 'makeRay' }
if (IN_STORM) {
  // With one raylet: several of one machine would set up the same runtime_env in the same folder, and get in each other's way.
  describe('mistakes', () => testSlowErrors(cluster))
  describe('with three raylets', () => {
    beforeAll(async () => {
      for (let more = 0; more < 2; more++) await cluster.addRaylet()
    }, 600_000)
    testEngine('ray', engine, { parts: ['answers', 'crashes', 'blobs'] })
    describe('faults', () => testFaults(cluster))
  })
} else {
  describe('mistakes', () => testErrors(cluster))
  testEngine('ray', engine)
  describe('faults', () => testFaults(cluster))
}
