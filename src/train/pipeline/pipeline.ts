import { createRequire } from 'node:module'
import { ManyworldsError } from '../../errors.ts'
import { runHost } from '../../runners/run-host.ts'
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
 * Trains an agent: workers collect episodes of many tasks at once, a learner trains on them, the new version of the policy goes to the workers, and so on.
 * Everything is stored as it happens. A training that was interrupted or killed continues with `resume`, and produces the same curve.
 *
 * | AWorld (Python) | here |
 * |---|---|
 * | `train_epoch(tasks_per_epoch)` | `trainEpoch({ tasksPerEpoch })` |
 * | | `train({ epochs })` |
 *
 * @example
 * const pipeline = new DistributedTrainingPipeline({ agent: clerk, tasks, engine: ray() })
 * for await (const { epoch, successRate, validation } of pipeline.train({ epochs: 20 })) console.log(epoch, successRate)
 */
export class DistributedTrainingPipeline implements Trainable {
  readonly #options: PipelineOptions
  readonly #checked: CheckedOptions | undefined
  #training: Promise<Training> | undefined
  /** Set once the training was opened. */
  #opened: OpenedTraining | undefined

  constructor(options: PipelineOptions) {
    this.#options = options
    // A worker that imports the script does not need it.
    if (mustPark()) return
    this.#checked = requireTraining().checkedOptions(options)
  }

  /** The id of the training; undefined until it is opened. */
  get id(): string | undefined {
    return this.#opened?.id
  }

  /** Runs one more epoch of `tasksPerEpoch` tasks, in updates of `tasksPerUpdate`; then validates. */
  async trainEpoch({ tasksPerEpoch }: { readonly tasksPerEpoch?: number } = {}): Promise<EpochReport> {
    if (mustPark()) return park('trainEpoch()')
    const training = await this.#open()
    // With an infinite number of epochs, there is always another one.
    const report = await this.#epoch(training, tasksPerEpoch, Number.POSITIVE_INFINITY)
    // Undefined only if a learner that selects its own training data has finished.
    return (report ?? (await training.last()))!
  }

  /**
   * Trains until this many epochs were done in total, including those of earlier sessions, and yields a report of each.
   * The last report includes the test. Leaving the loop ends the session; `train` or `resume` continues.
   */
  async *train({
    epochs: requested,
    tasksPerEpoch,
  }: {
    readonly epochs?: number
    readonly tasksPerEpoch?: number
  } = {}): AsyncGenerator<EpochReport, undefined> {
    if (mustPark()) return park('train()')
    const given = runHost()?.training?.epochs ?? requested
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
        // If everything was done before, yield the last report.
        const last = report ?? (given === 0 ? await training.last() : undefined)
        if (report === undefined && last) yield last
        if (report === undefined) return undefined
      }
    } finally {
      await this.close()
    }
  }

  /**
   * Trains with every combination of these values, each with several seeds, as separate trainings that can be stopped and resumed together. All other
   * options of this pipeline apply to all of them.
   *
   * @example
   * const { best } = await pipeline.sweep({ lr: [0.02, 0.05], rollouts: [4, 8], seeds: 5, epochs: 20 }).summary()
   */
  sweep(grid: SweepGrid): Sweep {
    return new Sweep(this.#options, grid)
  }

  /**
   * Ends the session: stops the learner's thread and releases the store. Workers stay warm for a while, as after a run.
   */
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
    const count = runHost()?.training?.tasksPerEpoch ?? tasksPerEpoch ?? this.#checked!.settings.tasksPerEpoch
    if (!Number.isInteger(count) || count < 1)
      throw new ManyworldsError(
        'CONFIG_INVALID',
        `\`tasksPerEpoch\` must be a whole number of at least 1, it is ${String(count)}`,
      )
    try {
      return await training.epoch({ tasksPerEpoch: count, epochs })
    } catch (error) {
      // The next call opens it again.
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

/** The part that only a driver needs; workers import this module too, for their policies. */
function requireTraining(): typeof driverHalf {
  const extension = import.meta.url.endsWith('.ts') ? '.ts' : '.js'
  return createRequire(import.meta.url)(`./training${extension}`) as typeof driverHalf
}
