import { configDefaults, defineConfig } from 'vitest/config'
import { LongestFirst } from './test/longest-first.ts'
import { SPARK_TESTS, whyNoSpark } from './test/needs-java.ts'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // test/spark/java.test.ts says so.
    exclude: [...configDefaults.exclude, ...(whyNoSpark() === undefined ? [] : SPARK_TESTS)],
    globalSetup: ['test/no-orphans.ts'],
    // Three files at a time: every test starts real processes, and CI machines have two cores, but tests of clusters mostly wait.
    maxWorkers: 3,
    sequence: { sequencer: LongestFirst },
    // Tests of run files say where theirs are; the others leave none.
    env: { MANYWORLDS_STORE: 'off' },
    testTimeout: 60_000,
    expect: { poll: { timeout: 20_000 } },
    hookTimeout: 60_000,
    // The package under test is the built one, loaded by Node itself as a user's program would load it.
    server: { deps: { external: [/\/dist\//, /\/test\/agents\//] } },
  },
})
