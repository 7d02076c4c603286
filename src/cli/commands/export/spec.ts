import { EXPERIENCE_FORMATS, FORMATS, SPLITS, WHAT } from '../../../export/formats.ts'
import type { ArgsOf, Spec } from '../../frame/command.ts'
import { runOrTraining, runsFolder } from '../../options/run-reference.ts'

export const exportSpec = {
  name: 'export',
  summary: 'Write a run as tables or for systems that train, or a trained policy',
  about: [
    'Of a run that goes on, what is there at this moment is written. Values are whole, also those that "manyworlds show" and the views of the run file cut. A file is there only once it is complete.',
    'The columns of CSV and Parquet have the names of the views: docs/data.md lists them. "manyworlds export-run" copies a run as a run file.',
    'Of a training, the runs that collected its episodes are written as one; --split chooses those that evaluated. --policy writes a version of the policy to a folder, which loadPolicy() of manyworlds/train opens.',
    'atif, verl, trl, sft, preference and prime-rl are for training: docs/exports.md has their fields. Tokens are those of the sampler, and are never made anew from text. What is left out is counted on stderr, with the reason.',
  ],
  positionals: { run: runOrTraining },
  options: {
    dir: runsFolder,
    format: {
      type: 'choice',
      choices: [...FORMATS, ...EXPERIENCE_FORMATS],
      value: 'FORMAT',
      description:
        'csv, jsonl, parquet; for training: atif, verl, trl, sft, preference, prime-rl; default: what FILE ends with',
    },
    out: {
      type: 'text',
      short: 'o',
      value: 'FILE',
      description: 'the file to write, or for atif a folder; for Parquet needed; default: stdout',
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
    split: {
      type: 'choice',
      choices: SPLITS,
      value: 'SPLIT',
      group: 'For training',
      description: 'train, validation, test or all; default: train, or all if no task of a run has a split',
    },
    onlySuccess: { type: 'flag', group: 'For training', description: 'only what was solved' },
    minReward: {
      type: 'number',
      value: 'REWARD',
      group: 'For training',
      description: 'only what has at least this reward',
    },
    best: {
      type: 'flag',
      group: 'For training',
      description: 'of each group only the rollouts with its highest reward',
    },
    perGroup: {
      type: 'integer',
      value: 'N',
      group: 'For training',
      description: 'with --best: at most so many of a group; default: all that are equally good',
      needs: 'best',
    },
    minMargin: {
      type: 'number',
      above: 0,
      value: 'REWARD',
      group: 'For training',
      description: 'for preference: how far the rewards of a pair must be apart; default: they differ',
    },
    policy: {
      type: 'text',
      value: 'FOLDER',
      group: 'The policy of a training',
      description: 'write the policy to this folder',
      suggest: 'files',
      excludes: ['format', 'out', 'subtasks', 'split', 'onlySuccess', 'minReward', 'best', 'minMargin'],
    },
    version: {
      type: 'integer',
      min: 0,
      value: 'N',
      group: 'The policy of a training',
      description: 'this version; default: the best by validation or, without it, the last',
      needs: 'policy',
    },
    force: { type: 'flag', description: 'replace FILE, or the policy of FOLDER, if it is there' },
  },
  examples: [
    { about: 'the newest run, for a spreadsheet', line: 'manyworlds export last --out answers.csv' },
    { about: 'every response with its trajectory', line: 'manyworlds export nightly-7 --format jsonl | jq .answer' },
    {
      about: 'tokens with masks and rewards, for verl',
      line: 'manyworlds export last --format verl --out train.parquet',
    },
    {
      about: 'solved conversations, for fine-tuning',
      line: 'manyworlds export last --format sft --only-success --out sft.jsonl',
    },
    {
      about: 'the best rollout of each group, if it is good: rejection sampling',
      line: 'manyworlds export last --format sft --best --per-group 1 --min-reward 0.5 --out sft.jsonl',
    },
    {
      about: 'the best of each group beside the worst, for DPO',
      line: 'manyworlds export last --format preference --out pairs.jsonl',
    },
    { about: 'a file for each trajectory', line: 'manyworlds export last --format atif --out trajectories/' },
    { about: 'the best policy of a training', line: 'manyworlds export desk-training --policy best/' },
    { about: 'every step, for pandas or DuckDB', line: 'manyworlds export last --what steps --out steps.parquet' },
  ],
  exitCodes: {
    0: 'it was written',
    1: 'the run could not be read, or the file not be written',
    130: 'interrupted with Ctrl-C; no file is left',
  },
} as const satisfies Spec

export type ExportArgs = ArgsOf<typeof exportSpec>
