import { afterAll, describe } from 'vitest'
import { testEngine } from '../../dist/testing/index.js'
import { IN_STORM } from '../support/storm.ts'
import { startCluster } from './cluster.ts'
import { REMOTE } from './engine.ts'
import { testErrors } from './errors.ts'
import { testFaults } from './faults.ts'
import { testNothingKept } from './nothing-kept.ts'
import { testSharing } from './sharing.ts'

/** Everything that needs a real cluster, on one: a master, two workers with three cores each, a Connect server with a token. */
const cluster = await startCluster()
process.env[REMOTE] = cluster.remote
afterAll(() => cluster.stop(), 60_000)

if (IN_STORM) {
  testNothingKept()
  describe('several drivers', () => testSharing(cluster))
} else {
  testEngine('spark', { module: new URL('./engine.ts', import.meta.url), export: 'makeSpark' })
  describe('mistakes', () => testErrors(cluster))
}
// Last: not much is left of the cluster afterwards.
describe('faults', () => testFaults(cluster))
