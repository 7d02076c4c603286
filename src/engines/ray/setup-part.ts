import type { EngineSetup } from '../cli-parts.ts'

/** What `manyworlds setup ray` does. */
export const raySetup: EngineSetup = {
  title: 'Ray',
  for: 'for --engine ray',
  version: '2.60.0',
  takes: ['version', 'address', 'tokenFile'],
  examples: [
    { about: 'the version that is tested', line: 'manyworlds setup ray' },
    { about: 'what a cluster needs', line: 'manyworlds setup ray --address head:6379 --token-file token.txt' },
  ],
  run: async (args) => (await import('./set-up.ts')).setUpRay(args),
}
