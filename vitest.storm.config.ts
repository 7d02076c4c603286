import { configDefaults, defineConfig } from 'vitest/config'
import { LongestFirst } from './test/support/longest-first.ts'
import { whyNoSpark } from './test/support/needs-java.ts'
import { STORM } from './test/support/projects.ts'
import { common } from './vitest.config.ts'

process.env.MANYWORLDS_STORM = 'true'

/** `npm run test:storm`: plugs are pulled, and fuzzers run for long. `npm test` runs a short share of most of these. */
export default defineConfig({
  test: {
    ...common,
    // Fewer than in `npm test`: a Ray or Spark that has to wait for long gives up by itself.
    maxWorkers: 3,
    setupFiles: [...common.setupFiles, 'test/support/seed.ts'],
    globalSetup: ['test/support/no-orphans.ts'],
    sequence: { sequencer: LongestFirst },
    include: [...STORM],
    // Without Java there is no Spark: test/spark/java.test.ts says so.
    exclude: [...configDefaults.exclude, ...(whyNoSpark() === undefined ? [] : ['test/spark/**'])],
  },
})
