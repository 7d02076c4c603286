import { configDefaults, defineConfig } from 'vitest/config'
import { BRIEF_JVMS } from './test/brief-jvms.ts'
import { fromSource } from './test/from-source.ts'
import { LongestFirst } from './test/longest-first.ts'
import { whyNoSpark } from './test/needs-java.ts'
import { CLUSTER, SPARK, UNIT } from './test/projects.ts'

/** Two for each core of a CI machine: most files start processes and then wait for them, or for a timeout of the network. */
const WORKERS = 4

const common = {
  maxWorkers: WORKERS,
  // Tests of run files say where theirs are; the others leave none.
  env: { MANYWORLDS_STORE: 'off', ...BRIEF_JVMS },
  testTimeout: 60_000,
  // What is polled is often the list of all processes, which costs some milliseconds.
  expect: { poll: { timeout: 60_000, interval: 150 } },
  hookTimeout: 60_000,
  // The package under test is the built one, loaded by Node itself as a user's program would load it.
  server: { deps: { external: [/\/dist\//, /\/test\/agents\//] } },
}
// Without Java there is no Spark: test/spark/java.test.ts says so.
const skipped = whyNoSpark() === undefined ? [] : SPARK

export default defineConfig({
  test: {
    globalSetup: ['test/no-orphans.ts'],
    maxWorkers: WORKERS,
    sequence: { sequencer: LongestFirst },
    projects: [
      {
        plugins: [fromSource()],
        test: { ...common, name: 'unit', include: [...UNIT], setupFiles: ['test/no-processes.ts'], isolate: false },
      },
      {
        test: {
          ...common,
          name: 'process',
          include: ['test/**/*.test.ts'],
          // `npm run test:heavy` has a configuration of its own.
          exclude: [...configDefaults.exclude, 'test/heavy/**', ...UNIT, ...CLUSTER],
        },
      },
      { test: { ...common, name: 'cluster', include: [...CLUSTER], exclude: [...configDefaults.exclude, ...skipped] } },
    ],
  },
})
