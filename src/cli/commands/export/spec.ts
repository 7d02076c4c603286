import { EXPERIENCE_FORMATS, FORMATS, SPLITS, WHAT } from '../../../export/formats.ts'
import type { ArgsOf, Spec } from '../../frame/command.ts'
import { runOrTraining, runsFolder } from '../../options/run-reference.ts'

export const exportSpec = {
  name: 'export',
  summary: 'Write a run as tables or training data, or a trained policy',
  about: [
    'A run in progress is written as it is now. Values are complete, unlike in "manyworlds show" and in the views of the run file. The file appears only when it is complete.',
    'The columns of CSV and Parquet have the same names as in the views: docs/data.md lists them. "manyworlds export-run" copies a run as a run file.',
    'For a training, all runs that collected its episodes are written as one table; --split selects the runs of evaluations instead. --policy writes a version of the policy to a folder, which loadPolicy() of manyworlds/train opens.',
    'atif, verl, trl, sft, preference and prime-rl are for training: docs/exports.md lists their fields. Tokens are exactly those of the sampler; text is never tokenized again. Rollouts that are left out are counted on stderr, with the reason.',
  ],
  positionals: { run: runOrTraining },
  options: {
    dir: runsFolder,
    format: {
      type: 'choice',
      choices: [...FORMATS, ...EXPERIENCE_FORMATS],
      value: 'FORMAT',
      description:
        'csv, jsonl, parquet; for training: atif, verl, trl, sft, preference, prime-rl; default: by the extension of FILE',
    },
    out: {
      type: 'text',
      short: 'o',
      value: 'FILE',
      description: 'the file to write, or a folder for atif; default: stdout, except for Parquet',
      suggest: 'files',
    },
    what: {
      type: 'choice',
      choices: WHAT,
      value: 'WHAT',
      default: 'responses',
      description: 'one row per response, step or task',
    },
    subtasks: { type: 'flag', description: 'include sub-tasks' },
    split: {
      type: 'choice',
      choices: SPLITS,
      value: 'SPLIT',
      group: 'For training',
      description: 'train, validation, test or all; default: train, or all if no task of a run has a split',
    },
    onlySuccess: { type: 'flag', group: 'For training', description: 'only solved rollouts' },
    minReward: {
      type: 'number',
      value: 'REWARD',
      group: 'For training',
      description: 'only rollouts with at least this reward',
    },
    best: {
      type: 'flag',
      group: 'For training',
      description: 'only the rollouts with the highest reward of their group',
    },
    perGroup: {
      type: 'integer',
      value: 'N',
      group: 'For training',
      description: 'with --best: at most this many of a group; default: all with the highest reward',
      needs: 'best',
    },
    minMargin: {
      type: 'number',
      above: 0,
      value: 'REWARD',
      group: 'For training',
      description: 'for preference: the smallest difference between the rewards of a pair; default: any difference',
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
    force: { type: 'flag', description: 'replace FILE, or the policy in FOLDER, if it exists' },
  },
  examples: [
    { about: 'the newest run, for a spreadsheet', line: 'manyworlds export last --out answers.csv' },
    { about: 'all responses with their trajectories', line: 'manyworlds export nightly-7 --format jsonl | jq .answer' },
    {
      about: 'tokens with masks and rewards, for verl',
      line: 'manyworlds export last --format verl --out train.parquet',
    },
    {
      about: 'solved conversations, for fine-tuning',
      line: 'manyworlds export last --format sft --only-success --out sft.jsonl',
    },
    {
      about: 'the best rollout of each group, with a minimum reward: rejection sampling',
      line: 'manyworlds export last --format sft --best --per-group 1 --min-reward 0.5 --out sft.jsonl',
    },
    {
      about: 'pairs of the best and the worst rollout of each group, for DPO',
      line: 'manyworlds export last --format preference --out pairs.jsonl',
    },
    { about: 'one file per trajectory', line: 'manyworlds export last --format atif --out trajectories/' },
    { about: 'the best policy of a training', line: 'manyworlds export desk-training --policy best/' },
    { about: 'all steps, for pandas or DuckDB', line: 'manyworlds export last --what steps --out steps.parquet' },
  ],
  exitCodes: {
    0: 'it was written',
    1: 'the run could not be read, or the file could not be written',
    130: 'interrupted with Ctrl-C; no file is left',
  },
} as const satisfies Spec

export type ExportArgs = ArgsOf<typeof exportSpec>
