import { configDefaults, defineConfig } from 'vitest/config'
import { BRIEF_JVMS } from './test/brief-jvms.ts'
import { LongestFirst } from './test/longest-first.ts'
import { SPARK_TESTS, whyNoSpark } from './test/needs-java.ts'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // `npm run test:heavy` has its own. Without Java there is no Spark: test/spark/java.test.ts says so.
    exclude: [...configDefaults.exclude, 'test/heavy/**', ...(whyNoSpark() === undefined ? [] : SPARK_TESTS)],
    globalSetup: ['test/no-orphans.ts'],
    // Twice as many as the cores of a CI machine: every test starts real processes, and then mostly waits for them.
    maxWorkers: 4,
    sequence: { sequencer: LongestFirst },
    // Tests of run files say where theirs are; the others leave none.
    env: { MANYWORLDS_STORE: 'off', ...BRIEF_JVMS },
    testTimeout: 60_000,
    expect: { poll: { timeout: 20_000 } },
    hookTimeout: 60_000,
    // The package under test is the built one, loaded by Node itself as a user's program would load it.
    server: { deps: { external: [/\/dist\//, /\/test\/agents\//] } },
  },
})
