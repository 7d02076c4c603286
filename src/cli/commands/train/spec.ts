import type { ArgsOf, Spec } from '../../frame/command.ts'
import { engineExamples } from '../../options/engine-options.ts'
import { modelOptions } from '../../options/model-options.ts'
import { placeOptions } from '../../options/place-options.ts'
import { listTrainingIds } from '../../options/run-ids.ts'
import { scriptOptions } from '../../options/script-options.ts'

const TRAINING = 'How it is trained'
const MODELS = 'Language models'
const LIMITS = 'Limits'
const RECORD = 'The training and its store'
const OUTPUT = 'Output'

export const trainSpec = {
  name: 'train',
  summary: 'Train an agent, record the training, show its progress',
  about: [
    'FILE makes a DistributedTrainingPipeline. Either it trains by itself, or it exports the pipeline or a sweep (as default, or as "pipeline"), and this command trains it. Options override those of the script.',
    'The training is recorded in the store under .manyworlds/runs. Ctrl-C once stops gracefully: running episodes may finish, collected ones are kept, and the command that resumes the training is printed. Ctrl-C twice stops at once. A training that was stopped or killed produces the same curve when it is resumed.',
  ],
  positionals: {
    script: {
      value: 'FILE',
      description: 'a TypeScript or JavaScript file that makes a DistributedTrainingPipeline',
      suggest: 'files',
    },
    scriptArgs: {
      value: 'ARG',
      description: 'arguments for the script, in process.argv',
      afterDashes: true,
      suggest: 'files',
    },
  },
  options: {
    epochs: {
      type: 'integer',
      value: 'N',
      description:
        'train until there are this many epochs, including earlier sessions; default: as in the script, or 10',
      group: TRAINING,
    },
    tasksPerEpoch: {
      type: 'integer',
      value: 'N',
      description: 'tasks per epoch; validation follows each epoch',
      group: TRAINING,
    },
    rollouts: { type: 'integer', value: 'N', description: 'how often each task of an update is run', group: TRAINING },
    overlap: {
      type: 'flag',
      description: 'collect for the next update while the learner is busy: faster, but the curve is not reproducible',
      group: TRAINING,
    },
    seed: {
      type: 'integer',
      value: 'N',
      min: Number.MIN_SAFE_INTEGER,
      description: 'the same seed gives the same curve, on every engine',
      group: TRAINING,
    },
    ...placeOptions,
    model: { ...modelOptions.model, group: MODELS },
    models: { ...modelOptions.models, group: MODELS },
    timeout: { ...scriptOptions.timeout, group: LIMITS },
    maxAttempts: { ...scriptOptions.maxAttempts, group: LIMITS },
    grace: { ...scriptOptions.grace, group: LIMITS },
    runId: { type: 'text', value: 'NAME', description: 'the name of a new training', group: RECORD },
    resume: {
      type: 'text',
      value: 'ID',
      description:
        'continue this training (an id, its beginning, "last"); "auto": the training that --run-id names, if it exists',
      group: RECORD,
      suggest: async () => ['last', 'auto', ...(await listTrainingIds())],
      excludes: ['noStore'],
    },
    store: { ...scriptOptions.store, group: RECORD },
    noStore: { type: 'flag', description: 'store nothing: the training cannot be resumed', group: RECORD },
    durability: { ...scriptOptions.durability, group: RECORD },
    cache: { ...scriptOptions.cache, group: RECORD },
    replay: { ...scriptOptions.replay, group: RECORD },
    log: {
      type: 'text',
      many: true,
      value: 'WHERE',
      description: 'also write the metrics of each update there: tensorboard, or tensorboard:FOLDER',
      group: OUTPUT,
      suggest: async () => ['tensorboard'],
    },
    showLogs: { ...scriptOptions.showLogs, group: OUTPUT },
    view: { ...scriptOptions.view, group: OUTPUT },
    json: {
      type: 'flag',
      description: 'print one line of JSON per update, evaluation and epoch',
      group: OUTPUT,
    },
    quiet: { ...scriptOptions.quiet, group: OUTPUT },
    noProgress: { ...scriptOptions.noProgress, group: OUTPUT },
  },
  examples: [
    { about: 'train as configured in the file', line: 'manyworlds train clerk.ts' },
    ...engineExamples('train'),
    { about: 'continue after an interruption', line: 'manyworlds train clerk.ts --resume last' },
    { about: 'ten more epochs', line: 'manyworlds train clerk.ts --resume nightly --epochs 30' },
  ],
  exitCodes: {
    0: 'the training finished',
    1: 'the training or the script failed',
    130: 'interrupted with Ctrl-C; 143 by SIGTERM, 129 by SIGHUP',
  },
} as const satisfies Spec

export type TrainArgs = ArgsOf<typeof trainSpec>
