import { FORMATS, WHAT } from '../../export/formats.ts'
import type { ArgsOf, Spec } from '../command.ts'
import { runReference, runsFolder } from './run-reference.ts'

export const exportSpec = {
  name: 'export',
  summary: 'Write the responses, steps or tasks of a run as CSV, JSONL or Parquet',
  about: [
    'Of a run that goes on, what is there at this moment is written. Values are whole, also those that "manyworlds show" and the views of the run file cut. A file is there only once it is complete.',
    'The columns of CSV and Parquet have the names of the views: docs/data.md lists them. "manyworlds export-run" copies a run as a run file.',
  ],
  positionals: { run: runReference },
  options: {
    dir: runsFolder,
    format: {
      type: 'choice',
      choices: FORMATS,
      value: 'FORMAT',
      description: 'csv, jsonl or parquet; default: what FILE ends with',
    },
    out: {
      type: 'text',
      short: 'o',
      value: 'FILE',
      description: 'the file to write, for Parquet needed; default: stdout',
      suggest: 'files',
    },
    what: {
      type: 'choice',
      choices: WHAT,
      value: 'WHAT',
      default: 'responses',
      description: 'a row for each response, each step or each task',
    },
    subtasks: { type: 'flag', description: 'those of sub-tasks too' },
    force: { type: 'flag', description: 'replace FILE if it is there' },
  },
  examples: [
    { about: 'the newest run, for a spreadsheet', line: 'manyworlds export last --out answers.csv' },
    { about: 'every response with its trajectory', line: 'manyworlds export nightly-7 --format jsonl | jq .answer' },
    { about: 'every step, for pandas or DuckDB', line: 'manyworlds export last --what steps --out steps.parquet' },
  ],
  exitCodes: {
    0: 'it was written',
    1: 'the run could not be read, or the file not be written',
    130: 'interrupted with Ctrl-C; no file is left',
  },
} as const satisfies Spec

export type ExportArgs = ArgsOf<typeof exportSpec>
