import { fileURLToPath } from 'node:url'
import { configDefaults, defineConfig } from 'vitest/config'
import { BRIEF_JVMS } from './test/support/brief-jvms.ts'
import { fromSource } from './test/support/from-source.ts'
import { LongestFirst } from './test/support/longest-first.ts'
import { whyNoSpark } from './test/support/needs-java.ts'
import { CLUSTER, ONLY_STORM, SPARK, UNIT } from './test/support/projects.ts'

/** Three for each core of a CI machine: most files start processes and then wait for them, or for a timeout of the network. */
const WORKERS = 6

/**
 * Compiled code is kept between the thousands of processes that tests start: 40 to 90 ms of CPU for each. Workers would have a
 * cache of their own in the user's folder; drivers and commands have none.
 */
process.env.NODE_COMPILE_CACHE ??= fileURLToPath(new URL('node_modules/.cache/compiled/', import.meta.url))

/** One seed for all that is random in storms and fuzzers: see test/support/storm.ts. */
process.env.MANYWORLDS_TEST_SEED ??= String(Math.floor(Math.random() * 2 ** 31))

export const common = {
  maxWorkers: WORKERS,
  // Tests of run files say where theirs are; the others leave none.
  env: { MANYWORLDS_STORE: 'off', ...BRIEF_JVMS },
  testTimeout: 60_000,
  // What is polled is often the list of all processes, which costs some milliseconds.
  expect: { poll: { timeout: 60_000, interval: 150 } },
  hookTimeout: 60_000,
  setupFiles: ['test/support/costs.ts'],
  // The package under test is the built one, loaded by Node itself as a user's program would load it.
  server: { deps: { external: [/\/dist\//, /\/test\/agents\//] } },
}
// Without Java there is no Spark: test/spark/java.test.ts says so.
const skipped = whyNoSpark() === undefined ? [] : SPARK

export default defineConfig({
  test: {
    globalSetup: ['test/support/no-orphans.ts'],
    maxWorkers: WORKERS,
    sequence: { sequencer: LongestFirst },
    projects: [
      {
        plugins: [fromSource()],
        test: {
          ...common,
          name: 'unit',
          include: [...UNIT],
          setupFiles: [...common.setupFiles, 'test/support/no-processes.ts'],
          isolate: false,
        },
      },
      {
        test: {
          ...common,
          name: 'process',
          include: ['test/**/*.test.ts'],
          // `npm run test:heavy` has a configuration of its own.
          exclude: [...configDefaults.exclude, 'test/heavy/**', ...UNIT, ...CLUSTER, ...ONLY_STORM],
        },
      },
      {
        test: {
          ...common,
          name: 'cluster',
          include: [...CLUSTER],
          exclude: [...configDefaults.exclude, ...skipped],
        },
      },
    ],
  },
})
