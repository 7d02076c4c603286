import { IMPORT_FORMATS } from '../../../import/import-formats.ts'
import type { ArgsOf, Spec } from '../../frame/command.ts'
import { runsFolder } from '../../options/run-reference.ts'

export const importSpec = {
  name: 'import',
  summary: 'Make a run of trajectories from elsewhere: ATIF, or conversations as JSONL',
  about: [
    'The run can be shown, compared, regraded and exported like any other; it cannot be resumed. Every trajectory is checked before anything is written. docs/exports.md says what becomes of the fields.',
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
      description: 'atif, or sft: lines with messages and tools; default: what the first one looks like',
    },
    runId: { type: 'text', value: 'ID', description: 'the id of the run; default: a new one' },
  },
  examples: [
    { about: 'trajectories of another system', line: 'manyworlds import trajectories.jsonl --run-id harbor-3' },
    { about: 'a folder with a file for each', line: 'manyworlds import trajectories/ --format atif' },
  ],
  exitCodes: {
    0: 'the run is in the store',
    1: 'the file could not be read, or is wrong; nothing was written',
    130: 'interrupted with Ctrl-C; nothing was written',
  },
} as const satisfies Spec

export type ImportArgs = ArgsOf<typeof importSpec>
