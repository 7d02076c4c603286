import { defineConfig } from 'vitest/config'
import { LongestFirst } from './test/support/longest-first.ts'
import { STORM } from './test/support/projects.ts'
import { common } from './vitest.config.ts'

process.env.MANYWORLDS_STORM = 'true'

/** `npm run test:storm`: plugs are pulled, and fuzzers run for long. `npm test` runs a short share of most of these. */
export default defineConfig({
  test: {
    ...common,
    setupFiles: [...common.setupFiles, 'test/support/seed.ts'],
    globalSetup: ['test/support/no-orphans.ts'],
    sequence: { sequencer: LongestFirst },
    include: [...STORM],
  },
})
