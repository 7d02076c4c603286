import { ManyworldsError } from '../../errors.ts'
import type { TrajectoryParts } from '../../trajectory/trajectory.ts'
import type { Algorithm } from '../algorithm.ts'
import type { Learner, Published } from '../learner.ts'
import { RLTrainer, type TrainReport } from '../rl-trainer.ts'
import { openLearner } from './open-learner.ts'
import type { Settings } from './settings.ts'
import type { NamedTask } from './task-sets.ts'

/** The result of training on a batch. */
export interface Learned {
  readonly report: TrainReport
  readonly published: Published
  /** Everything that the next batch depends on. */
  readonly state: Uint8Array
}

/** Where a batch comes from. */
export interface LearnedFrom {
  /** The number of the update. */
  readonly number: number
  /** The id of its run. */
  readonly run: string
  readonly tasks: readonly NamedTask[]
  /** The version that acted. */
  readonly by: Published
  /** Whether an earlier session started this update. */
  readonly isResumed: boolean
}

/** Makes the next version. */
export interface Trainer {
  /** Starts, or resumes from a state. */
  start(state: Uint8Array | undefined): Promise<Published>
  learn(batch: readonly TrajectoryParts[], from: LearnedFrom): Promise<Learned>
  /** The current state, for updates without training. */
  save(): Promise<Uint8Array>
  close(): Promise<void>
}

/** How many times a learner that dies is restarted for one batch. */
const MAX_RESTARTS = 3

/**
 * The trainer for learners that train on rows. If the learner's thread or process dies, it is restarted with its last
 * state and given the batch again; the result is the same.
 */
export class LearningTrainer implements Trainer {
  readonly #settings: Settings
  readonly #algorithm: Required<Algorithm> | undefined
  readonly #notice: (line: string) => void
  #learner: (Learner & { readonly ended?: boolean }) | undefined
  #trainer: RLTrainer | undefined
  #state: Uint8Array | undefined

  constructor(settings: Settings, algorithm: Required<Algorithm> | undefined, notice: (line: string) => void) {
    this.#settings = settings
    this.#algorithm = algorithm
    this.#notice = notice
  }

  /** Starts, or resumes from a state. */
  async start(state: Uint8Array | undefined): Promise<Published> {
    const { seed, algorithm, alarms } = this.#settings
    const { advantages, normalizer, failed } = algorithm
    await this.close()
    this.#state = state
    this.#learner = await openLearner(this.#settings, this.#algorithm, this.#notice)
    this.#trainer = new RLTrainer({
      learner: this.#learner,
      ...(advantages && { advantages }),
      ...(normalizer && { normalizer }),
      ...(failed && { failed }),
      ...(alarms && { alarms }),
    })
    return this.#trainer.start({ seed, ...(state && { state }) })
  }

  async learn(batch: readonly TrajectoryParts[]): Promise<Learned> {
    for (let deaths = 1; ; deaths++) {
      try {
        const report = await this.#trainer!.trainStep(batch)
        const published = await this.#trainer!.publish()
        this.#state = await this.#trainer!.save()
        return { report, published, state: this.#state }
      } catch (error) {
        if (this.#learner?.ended !== true) throw error
        if (deaths > MAX_RESTARTS) throw died(error as Error, deaths)
        this.#notice(`${(error as Error).message}; restarting it with its last state`)
        await this.start(this.#state)
      }
    }
  }

  /** The current state, for updates without training. */
  async save(): Promise<Uint8Array> {
    return (this.#state ??= await this.#trainer!.save())
  }

  async close(): Promise<void> {
    const { learner } = this.#settings
    // A learner made by the user must be disposed of by the user.
    if (this.#learner !== learner) await this.#learner?.[Symbol.asyncDispose]?.()
    this.#learner = undefined
  }
}

const died = (error: Error, times: number) =>
  new ManyworldsError('LEARNER_FAILED', `the learner died ${times} times on the same batch: ${error.message}`, {
    cause: error,
  })
