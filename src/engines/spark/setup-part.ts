import type { EngineSetup } from '../cli-parts.ts'

/** What `manyworlds setup spark` does. */
export const sparkSetup: EngineSetup = {
  title: 'Spark',
  for: 'for --engine spark --in-local',
  about:
    'Spark is for --in-local, and needs Java 17 or newer, which is not set up here. For a Spark cluster that has a Connect server, nothing needs to be set up.',
  version: '4.3.0',
  takes: ['version'],
  instead: 'for a Spark cluster, nothing needs to be set up here',
  examples: [{ about: 'a Spark to start on this machine', line: 'manyworlds setup spark' }],
  run: async (args) => (await import('./set-up.ts')).setUpSpark(args),
}
