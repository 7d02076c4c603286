import type { AnyAgent } from '../../agent.ts'
import type { PolicyMode } from '../../agents/policy.ts'
import type { SplitShares } from '../../data/split.ts'
import type { RunConfig } from '../../run-config.ts'
import type { AdvantageSettings, Normalizer } from '../advantage-settings.ts'
import type { AlarmSettings } from '../alarms.ts'
import type { Algorithm } from '../algorithm.ts'
import type { FailedPolicy } from '../failed-rollouts.ts'
import type { Learner } from '../learner.ts'
import type { LearnerReference } from '../learner-calls.ts'
import type { SinkSetting } from '../sinks/sink-of.ts'
import type { RolloutTask } from '../task-notes.ts'
import type { ObserveTraining } from './observer.ts'

type Tasks = Iterable<RolloutTask> | AsyncIterable<RolloutTask>

/** All tasks, to be divided; or those of each part. */
export type TrainingTasks = Tasks | { readonly train: Tasks; readonly validation?: Tasks; readonly test?: Tasks }

/** How trajectories change the policy: what `RLTrainer` and `gradientLearner` take, all of it with defaults. */
export interface TrainingAlgorithm extends Partial<Algorithm> {
  /** How good each action was. Default `{ name: 'grpo' }`. */
  readonly advantages?: AdvantageSettings
  /** What the loss is divided by. Default: the actions of the batch. */
  readonly normalizer?: Normalizer
  /** What rollouts count that have no reward. Default: they are left out. */
  readonly failed?: FailedPolicy
}

export interface EvaluateOptions {
  /** Validation comes after every so many epochs, and before the first. Default 1. */
  readonly every?: number
  /** How often each validation task is run. Default 1. */
  readonly rollouts?: number
  /** How often each test task is run. Default 4. */
  readonly testRollouts?: number
  /** `'greedy'`: the policy takes its best action. Default `'sample'`. */
  readonly mode?: PolicyMode
}

/** Keys of a run that make no sense for a training, which has many. */
type NotForTrainings =
  | 'sequenceDependent'
  | 'limit'
  | 'sampleSeed'
  | 'retryFailed'
  | 'deadlineMs'
  | 'maxCostUsd'
  | 'maxTokens'
  | 'progress'

/**
 * What is trained, and how. All else is that of a run: where its workers are, how many, where it is stored; `runId` names the
 * training, and `resume` goes on with one.
 */
export interface PipelineOptions extends Omit<RunConfig, NotForTrainings> {
  /** What acts: a step agent with a policy that learns, such as `softmaxPolicy()`. */
  readonly agent: AnyAgent
  /** What it acts on. One list is divided by content, so that the same question is never in two parts. */
  readonly tasks: TrainingTasks
  /**
   * Tasks of another kind, with graders of their own: each evaluated version runs them too, and an alarm tells when it has become worse at them than
   * the first one. They are never trained on, and choose nothing.
   */
  readonly offTask?: Iterable<RolloutTask> | AsyncIterable<RolloutTask>
  /** How one list is divided. Default: 80 % train, 10 % validation, 10 % test. */
  readonly split?: SplitShares
  readonly algorithm?: TrainingAlgorithm
  /**
   * What learns; by default, the policy of the agent by its gradient, in a thread of its own. By reference, it gets a thread too. For texts it is
   * `promptLearner()`, which chooses its tasks itself: an epoch is then one iteration of it, `rollouts` is 1 and `epochs` has no limit by default.
   */
  readonly learner?: Learner | LearnerReference
  /** How often each task of an update is run: the size of its group. Default 8. */
  readonly rollouts?: number
  /** Tasks of one update. Default 16. */
  readonly tasksPerUpdate?: number
  /** Tasks of one epoch, after which validation tells how good the policy is. Default 8 updates. */
  readonly tasksPerEpoch?: number
  /** Epochs of `train()`, unless it is told another number. Default 10. */
  readonly epochs?: number
  /** The same seed gives the same curve, on every engine. Default 0. */
  readonly seed?: number
  /** How versions are evaluated; `false`: not at all. */
  readonly evaluate?: EvaluateOptions | false
  /** Ends the training after so many evaluations that were no better than the best. Default: it goes on. */
  readonly patience?: number
  /**
   * Collects for the next updates while the learner is busy, with a policy that is up to `maxStaleness` updates old; `true`: 1. What is learned is weighted for that.
   * The curve then depends on time: the same seed does not give the same one. Default false.
   */
  readonly overlap?: boolean | { readonly maxStaleness?: number }
  /** Prefers tasks that are sometimes solved and sometimes not; `floor` of all draws are by chance alone. Default false. */
  readonly curriculum?: boolean | { readonly floor?: number }
  /**
   * To see what learning itself brings: `'off'` collects and evaluates without learning; `'shuffled'` deals the rewards of each batch out
   * anew, at random. Default: none.
   */
  readonly control?: 'off' | 'shuffled'
  /** Keeps the steps of one trajectory in so many; what came of each is kept in any case. Default 1: all. */
  readonly keepTrajectories?: number
  /** When a training that goes wrong is reported. */
  readonly alarms?: AlarmSettings
  /** Where its figures are written beside the store: `'tensorboard'`, `'tensorboard:FOLDER'`, or a sink of your own; or several. */
  readonly log?: SinkSetting | readonly SinkSetting[]
  /** `true`: shows how far the training is, on stderr; a function is told instead. Default false. */
  readonly progress?: boolean | ObserveTraining
}
