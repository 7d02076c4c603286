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
import type { RolloutTasks } from '../task-notes.ts'
import type { ObserveTraining } from './observer.ts'

/** One list of tasks to be split, or separate lists for each part. */
export type TrainingTasks =
  | RolloutTasks
  | { readonly train: RolloutTasks; readonly validation?: RolloutTasks; readonly test?: RolloutTasks }

/** How the policy is trained: the options of `RLTrainer` and `gradientLearner`, all with defaults. */
export interface TrainingAlgorithm extends Partial<Algorithm> {
  /** How advantages are computed. Default `{ name: 'grpo' }`. */
  readonly advantages?: AdvantageSettings
  /** The denominator of the loss. Default: the actions of the batch. */
  readonly normalizer?: Normalizer
  /** What rollouts without a reward count as. Default: they are left out. */
  readonly failed?: FailedPolicy
}

export interface EvaluateOptions {
  /** Validate after every this many epochs, and before the first. Default 1. */
  readonly every?: number
  /** Rollouts per validation task. Default 1. */
  readonly rollouts?: number
  /** Rollouts per test task. Default 4. */
  readonly testRollouts?: number
  /** `'greedy'`: the policy takes its most probable action. Default `'sample'`. */
  readonly mode?: PolicyMode
}

/** Run options that make no sense for a training, which consists of many runs. */
export type NotForTrainings =
  | 'sequenceDependent'
  | 'limit'
  | 'sampleSeed'
  | 'retryFailed'
  | 'deadlineMs'
  | 'maxCostUsd'
  | 'maxTokens'
  | 'progress'

/**
 * What to train, and how. All other options are those of a run: the engine, the workers, the store; `runId` names the
 * training, and `resume` resumes one.
 */
export interface PipelineOptions extends Omit<RunConfig, NotForTrainings> {
  /** The agent: a step agent with a trainable policy, such as `softmaxPolicy()`. */
  readonly agent: AnyAgent
  /** The tasks. A single list is split by content, so that the same question is never in two parts. */
  readonly tasks: TrainingTasks
  /**
   * Tasks of another kind, with their own graders. Each evaluated version runs them too, and an alarm reports if it is
   * worse at them than the first version. They are not trained on, and do not affect which version is best.
   */
  readonly offTask?: RolloutTasks
  /** How a single list is split. Default: 80 % train, 10 % validation, 10 % test. */
  readonly split?: SplitShares
  readonly algorithm?: TrainingAlgorithm
  /**
   * The learner; by default, gradient training of the agent's policy in its own thread. A learner given by reference
   * also gets a thread. For texts, use `promptLearner()`, which selects its own tasks: an epoch is then one of its
   * iterations, `rollouts` is 1, and `epochs` is unlimited by default.
   */
  readonly learner?: Learner | LearnerReference
  /**
   * Kills a learner in its thread when one call, such as an update, takes longer; it is restarted with its last state,
   * three times for the same update. Default: unlimited. A learner whose thread or Python process dies, or stops
   * sending heartbeats, is restarted at once.
   */
  readonly learnerTimeoutMs?: number
  /** Rollouts per task of an update: the group size. Default 8. */
  readonly rollouts?: number
  /** Tasks per update, which has each task once; all, if there are fewer. Default 16. */
  readonly tasksPerUpdate?: number
  /**
   * Tasks per epoch, after which the policy is validated; rounded up to full updates. Default: eight times
   * `tasksPerUpdate`.
   */
  readonly tasksPerEpoch?: number
  /** Epochs of `train()`, unless it is given a number. Default 10. */
  readonly epochs?: number
  /** The same seed gives the same curve on every engine. Default 0. */
  readonly seed?: number
  /** How versions are evaluated; `false` disables evaluation. */
  readonly evaluate?: EvaluateOptions | false
  /** Ends the training after this many evaluations without improvement. Default: unlimited. */
  readonly patience?: number
  /**
   * Collects for the next updates while the learner is busy, with a policy that is up to `maxStaleness` updates old;
   * `true` means 1. Importance weights correct for the staleness. The curve then depends on timing: the same seed does
   * not give the same curve. Default false.
   */
  readonly overlap?: boolean | { readonly maxStaleness?: number }
  /**
   * Prefers tasks that are solved sometimes, but not always; the fraction `floor` of all draws is uniform. Default
   * false.
   */
  readonly curriculum?: boolean | { readonly floor?: number }
  /**
   * Control experiments: `'off'` collects and evaluates without training; `'shuffled'` permutes the rewards of each
   * batch at random. Default: none.
   */
  readonly control?: 'off' | 'shuffled'
  /** Keeps the steps of one trajectory in this many; the results of all are kept. Default 1: all. */
  readonly keepTrajectories?: number
  /** Thresholds for alarms. */
  readonly alarms?: AlarmSettings
  /**
   * Where metrics are written besides the store: `'tensorboard'`, `'tensorboard:FOLDER'`, or your own sink; or several.
   */
  readonly log?: SinkSetting | readonly SinkSetting[]
  /** `true`: shows progress on stderr; a function receives the events instead. Default false. */
  readonly progress?: boolean | ObserveTraining
}
