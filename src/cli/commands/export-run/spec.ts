import type { ArgsOf, Spec } from '../../frame/command.ts'
import { runReference, runsFolder } from '../../options/run-reference.ts'

export const exportRunSpec = {
  name: 'export-run',
  summary: 'Copy a run into a file of its own',
  about: [
    'The file has everything that belongs to the run. You can mail, show and resume it, or import it on another machine. The run stays in its store.',
  ],
  positionals: {
    run: runReference,
    file: { value: 'FILE', description: 'the file to write; its name must end with .sqlite or .db', suggest: 'files' },
  },
  options: { dir: runsFolder },
  examples: [
    { about: 'one run as a file', line: 'manyworlds export-run nightly-7 nightly-7.sqlite' },
    { about: 'the newest run of another folder', line: 'manyworlds export-run last run.sqlite --dir data/runs' },
  ],
  exitCodes: { 0: 'the file was written', 1: 'it could not be written' },
} as const satisfies Spec

export type ExportRunArgs = ArgsOf<typeof exportRunSpec>
