import type { ArgsOf, Spec } from '../../frame/command.ts'
import { runReference, runsFolder } from '../../options/run-reference.ts'

export const exportRunSpec = {
  name: 'export-run',
  summary: 'Copy a run into a file of its own',
  about: [
    'The file has everything that is known of the run, and can be mailed, shown, resumed and imported elsewhere. The run stays where it is.',
  ],
  positionals: {
    run: runReference,
    file: { value: 'FILE', description: 'the file to make, which ends with .sqlite', suggest: 'files' },
  },
  options: { dir: runsFolder },
  examples: [
    { about: 'one run as a file', line: 'manyworlds export-run nightly-7 nightly-7.sqlite' },
    { about: 'the newest run of another folder', line: 'manyworlds export-run last run.sqlite --dir data/runs' },
  ],
  exitCodes: { 0: 'the file was made', 1: 'it could not be made' },
} as const satisfies Spec

export type ExportRunArgs = ArgsOf<typeof exportRunSpec>
