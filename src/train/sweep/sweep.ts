import { createRequire } from 'node:module'
import { mustPark, park } from '../../worker/role.ts'
import type { PipelineOptions } from '../pipeline/options.ts'
import { TRAINABLE, type Trainable } from '../pipeline/trainable.ts'
import type { SweepGrid } from './grid.ts'
import type * as driverHalf from './run-sweep.ts'
import type { SweepResult, SweepSummary } from './summary.ts'

/**
 * Trainings with different settings, one after the other, each with several seeds. Finished trainings are not run again: the same sweep
 * with the same `runId` continues after it was stopped or killed, even with more values or seeds.
 *
 * @example
 * const sweep = pipeline.sweep({ lr: [0.02, 0.05], seeds: 5, epochs: 20 })
 * for await (const { id, validation } of sweep) console.log(id, validation?.success?.value)
 * console.log((await sweep.summary()).best?.label)
 */
export class Sweep implements AsyncIterable<SweepResult>, Trainable {
  readonly #plan: driverHalf.SweepPlan | undefined
  #summary: SweepSummary | undefined

  constructor(options: PipelineOptions, grid: SweepGrid) {
    // A worker that imports the script does not need it.
    if (mustPark()) return
    this.#plan = requireDriverHalf().planSweep(options, grid)
  }

  /** The results as they come, including those of earlier sessions. */
  async *[Symbol.asyncIterator](): AsyncGenerator<SweepResult, undefined> {
    if (mustPark()) return park('a sweep')
    const half = requireDriverHalf()
    const session = half.openSweep(this.#plan!)
    const results: SweepResult[] = []
    for await (const result of half.runSweep(session)) {
      results.push(result)
      yield result
    }
    this.#summary = half.summarizeSweep(session.id, session.plan.points, results)
  }

  /** Runs what is missing, and summarizes all results. */
  async summary(): Promise<SweepSummary> {
    if (mustPark()) return park('a sweep')
    if (this.#summary === undefined) for await (const _ of this);
    return this.#summary!
  }

  /** For `manyworlds train`, if a script exports it. */
  get [TRAINABLE](): Trainable[typeof TRAINABLE] {
    return { train: () => this.summary() }
  }
}

/** The part that only a driver needs; workers import this module too, for their policies. */
function requireDriverHalf(): typeof driverHalf {
  const extension = import.meta.url.endsWith('.ts') ? '.ts' : '.js'
  return createRequire(import.meta.url)(`./run-sweep${extension}`) as typeof driverHalf
}
