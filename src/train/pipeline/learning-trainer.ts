import { ManyworldsError } from '../../errors.ts'
import type { TrajectoryParts } from '../../trajectory/trajectory.ts'
import type { Algorithm } from '../algorithm.ts'
import type { Learner, Published } from '../learner.ts'
import { RLTrainer, type TrainReport } from '../rl-trainer.ts'
import { openLearner } from './open-learner.ts'
import type { Settings } from './settings.ts'
import type { NamedTask } from './task-sets.ts'

/** What came of a batch. */
export interface Learned {
  readonly report: TrainReport
  readonly published: Published
  /** All that the next batch depends on. */
  readonly state: Uint8Array
}

/** What a batch was made of. */
export interface LearnedFrom {
  /** Of the update. */
  readonly number: number
  /** The id of its run. */
  readonly run: string
  readonly tasks: readonly NamedTask[]
  /** The version that acted. */
  readonly by: Published
  /** An earlier session has begun it. */
  readonly isResumed: boolean
}

/** What makes the next version. */
export interface Trainer {
  /** Begins, or goes on from a state. */
  start(state: Uint8Array | undefined): Promise<Published>
  learn(batch: readonly TrajectoryParts[], from: LearnedFrom): Promise<Learned>
  /** As it is now, for who has nothing to learn from. */
  save(): Promise<Uint8Array>
  close(): Promise<void>
}

/** How often a learner that dies is started again for one batch. */
const MOST_DEATHS = 3

/**
 * The trainer of a training. A learner whose thread or process dies is started again with its last state, and has the batch once
 * more: what comes of it is the same.
 */
export class LearningTrainer implements Trainer {
  readonly #settings: Settings
  readonly #algorithm: Required<Algorithm> | undefined
  readonly #died: (error: Error) => void
  #learner: (Learner & { readonly ended?: boolean }) | undefined
  #trainer: RLTrainer | undefined
  #state: Uint8Array | undefined

  constructor(settings: Settings, algorithm: Required<Algorithm> | undefined, died: (error: Error) => void) {
    this.#settings = settings
    this.#algorithm = algorithm
    this.#died = died
  }

  /** Begins, or goes on from a state. */
  async start(state: Uint8Array | undefined): Promise<Published> {
    const { seed, algorithm, alarms } = this.#settings
    const { advantages, normalizer, failed } = algorithm
    await this.close()
    this.#state = state
    this.#learner = await openLearner(this.#settings, this.#algorithm)
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
        if (deaths > MOST_DEATHS) throw died(error as Error, deaths)
        this.#died(error as Error)
        await this.start(this.#state)
      }
    }
  }

  /** As it is now, for who has nothing to learn from. */
  async save(): Promise<Uint8Array> {
    return (this.#state ??= await this.#trainer!.save())
  }

  async close(): Promise<void> {
    const { learner } = this.#settings
    // One that the user has made is the user's to end.
    if (this.#learner !== learner) await this.#learner?.[Symbol.asyncDispose]?.()
    this.#learner = undefined
  }
}

const died = (error: Error, times: number) =>
  new ManyworldsError('LEARNER_FAILED', `the learner died ${times} times over one batch: ${error.message}`, {
    cause: error,
  })
