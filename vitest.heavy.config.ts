import { defineConfig } from 'vitest/config'

/** Tests beside Python packages that take gigabytes: PyTorch and TRL, and servers that others watch trainings with. */
export default defineConfig({
  test: {
    include: ['test/heavy/**/*.test.ts'],
    globalSetup: ['test/support/no-orphans.ts'],
    // As many as a CI machine has cores, one thread each: they compute.
    maxWorkers: 2,
    env: { MANYWORLDS_STORE: 'off' },
    testTimeout: 600_000,
    // The package under test is the built one, as in vitest.config.ts.
    server: { deps: { external: [/\/dist\//, /\/test\/agents\//] } },
  },
})
