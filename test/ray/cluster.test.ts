import { afterAll, beforeAll, describe } from 'vitest'
import { testEngine } from '../../dist/testing/index.js'
import { startCluster } from './cluster.ts'
import { ADDRESS, TOKEN_FILE } from './engine.ts'
import { testErrors } from './errors.ts'
import { testFaults } from './faults.ts'

/** Everything that needs a real cluster, on one: a raylet takes five seconds of a core to start. */
const cluster = await startCluster(1)
process.env[ADDRESS] = cluster.address
process.env[TOKEN_FILE] = cluster.tokenFile
afterAll(() => cluster.stop(), 60_000)

// Raylets of one machine share a folder: those that install packages there at the same time get into each other's way.
describe('mistakes', () => testErrors(cluster))

describe('with three raylets', () => {
  beforeAll(async () => {
    for (let more = 0; more < 2; more++) await cluster.addRaylet()
  }, 600_000)

  testEngine('ray', { module: new URL('./engine.ts', import.meta.url), export: 'makeRay' })
  // Last: not much is left of the cluster afterwards.
  describe('faults', () => testFaults(cluster))
})
