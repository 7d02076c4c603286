import type { ArgsOf, Spec } from '../../frame/command.ts'
import { engineExamples } from '../../options/engine-options.ts'
import { modelOptions } from '../../options/model-options.ts'
import { placeOptions } from '../../options/place-options.ts'
import { listRunIds } from '../../options/run-ids.ts'
import { scriptOptions } from '../../options/script-options.ts'

const MODELS = 'Language models'
const LIMITS = 'Limits'
const RECORD = 'The run and its file'
const OUTPUT = 'Output'

export const runSpec = {
  name: 'run',
  summary: 'Run a script, record the run, show its progress',
  about: [
    'Options override the RunConfig that the script passes to Runners. The run is recorded in a file under .manyworlds/runs, so that it can be shown and resumed.',
    'Ctrl-C once stops gracefully: running tasks may finish, finished tasks are kept, and the command that resumes the run is printed. Ctrl-C twice stops at once.',
  ],
  positionals: {
    script: { value: 'SCRIPT', description: 'a TypeScript or JavaScript file that calls Runners', suggest: 'files' },
    scriptArgs: {
      value: 'ARG',
      description: 'arguments for the script, in process.argv',
      afterDashes: true,
      suggest: 'files',
    },
  },
  options: {
    ...placeOptions,
    model: { ...modelOptions.model, group: MODELS },
    models: { ...modelOptions.models, group: MODELS },
    timeout: { ...scriptOptions.timeout, group: LIMITS },
    maxAttempts: { ...scriptOptions.maxAttempts, group: LIMITS },
    deadline: {
      type: 'duration',
      value: 'DURATION',
      description: 'a time limit for the whole run; unfinished tasks are then cancelled',
      group: LIMITS,
    },
    maxCost: {
      type: 'number',
      above: 0,
      value: 'USD',
      description: 'the budget of the run, by the costs that steps report; when it is spent, no further task starts',
      group: LIMITS,
    },
    maxTokens: {
      type: 'integer',
      value: 'N',
      description: 'the same in tokens, input and output together',
      group: LIMITS,
    },
    grace: { ...scriptOptions.grace, group: LIMITS },
    rollouts: {
      type: 'integer',
      value: 'N',
      description: 'run every task this many times, as one group',
      group: RECORD,
    },
    limit: {
      type: 'integer',
      value: 'N',
      description: 'run only a random sample of this many tasks, selected by --seed',
      group: LIMITS,
    },
    sampleSeed: {
      type: 'integer',
      value: 'N',
      min: Number.MIN_SAFE_INTEGER,
      description: 'with --limit: the seed of the sample, if --seed should change without it',
      group: LIMITS,
      needs: 'limit',
    },
    runId: { type: 'text', value: 'ID', description: 'the name of a new run', group: RECORD },
    resume: {
      type: 'text',
      value: 'ID',
      description:
        'continue this run (an id, its beginning, "last", a path): tasks that have an answer do not run again; "auto": the run that --run-id names, if it exists',
      group: RECORD,
      suggest: async () => ['last', 'auto', ...(await listRunIds())],
      excludes: ['noStore'],
    },
    retryFailed: {
      type: 'flag',
      description: 'with --resume: also repeat tasks that failed, timed out or crashed',
      group: RECORD,
      needs: 'resume',
    },
    acceptChanges: {
      type: 'flag',
      description: 'with --resume: go on although models, sampling, params of agents or the grader have changed',
      group: RECORD,
      needs: 'resume',
    },
    seed: {
      type: 'integer',
      value: 'N',
      min: Number.MIN_SAFE_INTEGER,
      description: 'for ctx.random, and for the sample of --limit',
      group: RECORD,
    },
    store: {
      ...scriptOptions.store,
      value: 'PATH',
      description: 'a folder for the run file, or a path that ends with .sqlite or .db',
      group: RECORD,
    },
    noStore: { type: 'flag', description: 'write no run file', group: RECORD },
    durability: { ...scriptOptions.durability, group: RECORD },
    cache: { ...scriptOptions.cache, group: RECORD },
    replay: { ...scriptOptions.replay, group: RECORD },
    failUnder: {
      ...{ type: 'number', above: 0, max: 0.9999, value: 'RATE' },
      description: 'fail unless at least this share of tasks is solved, with 95 % confidence: 0.9',
      group: OUTPUT,
    },
    maxUngraded: {
      ...{ type: 'number', min: 0, max: 1, value: 'SHARE' },
      description: 'with --fail-under: also fail if more than this share of rollouts has no result, default 0.02',
      group: OUTPUT,
    },
    showLogs: { ...scriptOptions.showLogs, group: OUTPUT },
    view: { ...scriptOptions.view, group: OUTPUT },
    json: { type: 'flag', description: 'print progress and responses as lines of JSON', group: OUTPUT },
    quiet: { ...scriptOptions.quiet, group: OUTPUT },
    noProgress: { ...scriptOptions.noProgress, group: OUTPUT },
  },
  examples: [
    { about: 'run a script as it is', line: 'manyworlds run agents.ts' },
    {
      about: 'eight workers, and at most a minute for each of three attempts at a task',
      line: 'manyworlds run agents.ts -w 8 --timeout 1m --max-attempts 3',
    },
    ...engineExamples('run'),
    {
      about: 'continue after an interruption, and repeat failed tasks',
      line: 'manyworlds run agents.ts --resume nightly-7 --retry-failed',
    },
    { about: 'again, with the answers of models from the store', line: 'manyworlds run agents.ts --replay' },
    {
      about: 'with another model in place of small, for a comparison',
      line: 'manyworlds run agents.ts --model small=big --run-id with-big',
    },
    { about: 'try it on 50 of its tasks', line: 'manyworlds run agents.ts --limit 50 --seed 1' },
    { about: 'arguments for the script come after --', line: 'manyworlds run agents.ts --json -- --topic whales' },
  ],
  exitCodes: {
    0: 'every task succeeded; with --fail-under: enough tasks are solved',
    1: 'some tasks did not succeed, or the script failed',
    130: 'interrupted with Ctrl-C; 143 by SIGTERM, 129 by SIGHUP',
  },
} as const satisfies Spec

export type RunArgs = ArgsOf<typeof runSpec>
