import type { ArgsOf, Spec } from '../../frame/command.ts'
import { runsFolder } from '../../options/run-reference.ts'

export const importRunSpec = {
  name: 'import-run',
  summary: 'Copy a run from a file into the store of a folder',
  about: ['The file is not changed. The store must not have a run with the same id.'],
  positionals: { file: { value: 'FILE', description: 'a run file', suggest: 'files' } },
  options: { dir: runsFolder },
  examples: [
    { about: 'a run file that someone sent you', line: 'manyworlds import-run nightly-7.sqlite' },
    { about: 'into the store of another folder', line: 'manyworlds import-run nightly-7.sqlite --dir data/runs' },
  ],
  exitCodes: { 0: 'the run is in the store', 1: 'it could not be copied' },
} as const satisfies Spec

export type ImportRunArgs = ArgsOf<typeof importRunSpec>
