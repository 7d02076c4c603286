import { createRequire } from 'node:module'
import { ManyworldsError } from '../../errors.ts'
import { surroundings } from '../../runners/surroundings.ts'
import { mustPark, park } from '../../worker/role.ts'
import type { SweepGrid } from '../sweep/grid.ts'
import { Sweep } from '../sweep/sweep.ts'
import type { EpochReport } from './epoch-report.ts'
import type { CheckedOptions, OpenedTraining } from './open-training.ts'
import type { PipelineOptions } from './options.ts'
import { TRAINABLE, type Trainable } from './trainable.ts'
import type * as driverHalf from './training.ts'
import type { Training } from './training.ts'

/**
 * Trains an agent: has workers collect episodes of many tasks at once, learns from them, sends the better policy to the workers, and so on.
 * Everything is stored as it happens. A training that was interrupted, or killed, goes on with `resume`, and comes to the same curve.
 *
 * | seed (Python) | here |
 * |---|---|
 * | `train_epoch(tasks_per_epoch)` | `trainEpoch({ tasksPerEpoch })` |
 * | | `train({ epochs })` |
 *
 * @example
 * const pipeline = new DistributedTrainingPipeline({ agent: clerk, tasks, engineName: 'ray' })
 * for await (const { epoch, successRate, validation } of pipeline.train({ epochs: 20 })) console.log(epoch, successRate)
 */
export class DistributedTrainingPipeline implements Trainable {
  readonly #options: PipelineOptions
  readonly #checked: CheckedOptions | undefined
  #training: Promise<Training> | undefined
  /** Of the training, once there is one. */
  #opened: OpenedTraining | undefined

  constructor(options: PipelineOptions) {
    this.#options = options
    // A worker that reads the script has no use for it.
    if (mustPark()) return
    this.#checked = requireTraining().checkedOptions(options)
  }

  /** The name of the training; undefined before it has begun, unless `runId` says it. */
  get id(): string | undefined {
    return this.#opened?.id
  }

  /** One more epoch: so many tasks, in updates of `tasksPerUpdate`; then validation. */
  async trainEpoch({ tasksPerEpoch }: { readonly tasksPerEpoch?: number } = {}): Promise<EpochReport> {
    if (mustPark()) return park('trainEpoch()')
    const training = await this.#open()
    // Without an end there is always another one.
    const report = await this.#epoch(training, tasksPerEpoch, Number.POSITIVE_INFINITY)
    // Only a learner that chooses itself what to learn from says that it is done.
    return (report ?? (await training.last()))!
  }

  /**
   * Trains until there are so many epochs in all, those of earlier sessions included, and gives a report of each. With the last one
   * comes the test. Leaving the loop ends the session; `train` or `resume` go on.
   */
  async *train({
    epochs: wished,
    tasksPerEpoch,
  }: {
    readonly epochs?: number
    readonly tasksPerEpoch?: number
  } = {}): AsyncGenerator<EpochReport, undefined> {
    if (mustPark()) return park('train()')
    const given = surroundings()?.training?.epochs ?? wished
    if (given !== undefined && (!Number.isInteger(given) || given < 1))
      throw new ManyworldsError(
        'CONFIG_INVALID',
        `\`epochs\` must be a whole number of at least 1, it is ${String(given)}`,
      )
    const epochs = given ?? this.#checked!.settings.epochs
    const training = await this.#open()
    try {
      for (let given = 0; ; given++) {
        const report = await this.#epoch(training, tasksPerEpoch, epochs)
        if (report) yield report
        // All of it was done before: whoever asks again is told what came of it.
        const last = report ?? (given === 0 ? await training.last() : undefined)
        if (report === undefined && last) yield last
        if (report === undefined) return undefined
      }
    } finally {
      await this.close()
    }
  }

  /**
   * Trains with every combination of these values, each with several seeds: as trainings of their own, which all together
   * can be stopped and resumed. What else this pipeline says holds for all of them.
   *
   * @example
   * const { best } = await pipeline.sweep({ lr: [0.02, 0.05], rollouts: [4, 8], seeds: 5, epochs: 20 }).summary()
   */
  sweep(grid: SweepGrid): Sweep {
    return new Sweep(this.#options, grid)
  }

  /** Ends the session: the thread that learns, and the hold on the store. Workers stay warm for a while, as after a run. */
  async close(): Promise<void> {
    const training = this.#training
    this.#training = undefined
    await (await training?.catch(() => undefined))?.close()
  }

  /** For `manyworlds train`, if a script exports it. */
  get [TRAINABLE](): Trainable[typeof TRAINABLE] {
    return {
      train: async () => {
        for await (const _ of this.train());
        return undefined
      },
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  async #epoch(
    training: Training,
    tasksPerEpoch: number | undefined,
    epochs: number,
  ): Promise<EpochReport | undefined> {
    const wished = surroundings()?.training?.tasksPerEpoch ?? tasksPerEpoch ?? this.#checked!.settings.tasksPerEpoch
    if (!Number.isInteger(wished) || wished < 1)
      throw new ManyworldsError(
        'CONFIG_INVALID',
        `\`tasksPerEpoch\` must be a whole number of at least 1, it is ${String(wished)}`,
      )
    try {
      return await training.epoch({ tasksPerEpoch: wished, epochs })
    } catch (error) {
      // The next call opens it anew.
      if (training.closed) this.#training = undefined
      throw error
    }
  }

  async #open(): Promise<Training> {
    this.#training ??= requireTraining().Training.open(this.#checked!, this.#opened)
    try {
      const training = await this.#training
      this.#opened = { id: training.id, config: training.config }
      return training
    } catch (error) {
      this.#training = undefined
      throw error
    }
  }
}

/** The half that only a driver needs: workers import this module too, for their policies. */
function requireTraining(): typeof driverHalf {
  const extension = import.meta.url.endsWith('.ts') ? '.ts' : '.js'
  return createRequire(import.meta.url)(`./training${extension}`) as typeof driverHalf
}
