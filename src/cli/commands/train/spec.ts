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
    'FILE makes a DistributedTrainingPipeline. It trains it itself, or exports it (as default, or as "pipeline"), or a sweep of it: then this command trains it. Options override those of the script.',
    'The training is recorded in the store under .manyworlds/runs as it goes on. Ctrl-C once stops gracefully: episodes that run may finish, what is collected is kept, and the command that resumes is printed. Ctrl-C twice stops at once. A training that was stopped, or killed, comes to the same curve when it is resumed.',
  ],
  positionals: {
    script: {
      value: 'FILE',
      description: 'a TypeScript or JavaScript file that makes a DistributedTrainingPipeline',
      suggest: 'files',
    },
    scriptArgs: {
      value: 'ARG',
      description: 'for the script, which finds them in process.argv',
      afterDashes: true,
      suggest: 'files',
    },
  },
  options: {
    epochs: {
      type: 'integer',
      value: 'N',
      description: 'train until there are so many epochs in all; default: what the script says, else 10',
      group: TRAINING,
    },
    tasksPerEpoch: {
      type: 'integer',
      value: 'N',
      description: 'tasks of one epoch, after which validation tells how good the policy is',
      group: TRAINING,
    },
    rollouts: { type: 'integer', value: 'N', description: 'how often each task of an update is run', group: TRAINING },
    overlap: {
      type: 'flag',
      description: 'collect for the next update while the learner is busy: faster, and the curve is not the same twice',
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
        'go on with this training (an id, its beginning, "last"); "auto": with the one that --run-id names, if there is one',
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
      description: 'write the figures of each update there too: tensorboard, or tensorboard:FOLDER',
      group: OUTPUT,
      suggest: async () => ['tensorboard'],
    },
    showLogs: { ...scriptOptions.showLogs, group: OUTPUT },
    view: { ...scriptOptions.view, group: OUTPUT },
    json: {
      type: 'flag',
      description: 'print a line of JSON for each update, evaluation and epoch',
      group: OUTPUT,
    },
    quiet: { ...scriptOptions.quiet, group: OUTPUT },
    noProgress: { ...scriptOptions.noProgress, group: OUTPUT },
  },
  examples: [
    { about: 'train as the file says', line: 'manyworlds train clerk.ts' },
    ...engineExamples('train'),
    { about: 'go on after an interruption', line: 'manyworlds train clerk.ts --resume last' },
    { about: 'ten more epochs', line: 'manyworlds train clerk.ts --resume nightly --epochs 30' },
  ],
  exitCodes: {
    0: 'the training came to its end',
    1: 'the training or the script failed',
    130: 'interrupted with Ctrl-C',
  },
} as const satisfies Spec

export type TrainArgs = ArgsOf<typeof trainSpec>
