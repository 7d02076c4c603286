import { IMPORT_FORMATS } from '../../../import/import-formats.ts'
import type { ArgsOf, Spec } from '../../frame/command.ts'
import { runsFolder } from '../../options/run-reference.ts'

export const importSpec = {
  name: 'import',
  summary: 'Make a run from trajectories of other programs: ATIF, or JSONL conversations',
  about: [
    'The run can be shown, compared, regraded and exported like any other; it cannot be resumed. All trajectories are checked before anything is written. docs/exports.md explains how the fields are converted.',
    '"manyworlds import-run" copies a run from a run file.',
  ],
  positionals: {
    file: {
      value: 'FILE',
      description: 'JSONL, a JSON file with a document or a list of them, or a folder of JSON files',
      suggest: 'files',
    },
  },
  options: {
    dir: runsFolder,
    format: {
      type: 'choice',
      choices: IMPORT_FORMATS,
      value: 'FORMAT',
      description: 'atif, or sft: lines with messages and tools; default: detected from the first record',
    },
    runId: { type: 'text', value: 'ID', description: 'the id of the run; default: a new one' },
  },
  examples: [
    { about: 'trajectories of another program', line: 'manyworlds import trajectories.jsonl --run-id harbor-3' },
    { about: 'a folder with one file per trajectory', line: 'manyworlds import trajectories/ --format atif' },
  ],
  exitCodes: {
    0: 'the run is in the store',
    1: 'the file could not be read or is invalid; nothing was written',
    130: 'interrupted with Ctrl-C; nothing was written',
  },
} as const satisfies Spec

export type ImportArgs = ArgsOf<typeof importSpec>
