import type { Metrics } from '../learner.ts'
import type { DropReasons, Staleness } from '../rl-trainer.ts'
import type { EvaluationFigures, Figure, UpdateReport, UpdateRow } from './training-record.ts'

/** The result of an epoch. */
export interface EpochReport {
  /** The id of the training. */
  readonly id: string
  /** From 1. */
  readonly epoch: number
  /** Updates so far. */
  readonly updates: number
  /** The version after the epoch. */
  readonly version: number
  /** Episodes of this epoch. */
  readonly trajectories: number
  /** Of these episodes; null if none was judged. */
  readonly successRate: number | null
  readonly reward: number | null
  /** Actions per episode. */
  readonly length: number | null
  /** Model tokens per episode. */
  readonly avgTokens: number
  /** Of the last update that trained on something; null if there was none. */
  readonly loss: number | null
  /** The learner's metrics, averaged over the updates of the epoch. */
  readonly metrics: Metrics
  readonly skippedGroups: number
  /** Rollouts that were left out, and how many for which reason. */
  readonly dropped: number
  readonly dropReasons: DropReasons
  /** How many versions older than the learner the acting policy was, over the rows that were trained on. */
  readonly staleness: Staleness | null
  readonly alarms: readonly string[]
  readonly collectMs: number
  readonly trainMs: number
  /** The evaluation of the version after the epoch, if there was one. */
  readonly validation: (EvaluationFigures & { readonly version: number }) | null
  /** The same version on the `offTask` tasks, compared with the first version; null if there are none. */
  readonly offTask: TestReport | null
  /** The best version so far: by validation or, without validation, the last. */
  readonly best: number
  /** In the last epoch: the best version on the test tasks, compared with the first version. */
  readonly test: TestReport | null
  /** SHA-256 of the curve up to here. */
  readonly digest: string
}

export interface TestReport extends EvaluationFigures {
  readonly version: number
  /** The version that the training began with, on the same tasks with the same seeds. */
  readonly before: EvaluationFigures
  /** The paired difference of the two versions; null if nothing was judged. */
  readonly difference: Figure | null
}

type Of<T> = (report: UpdateReport) => T

/** Aggregates the updates of an epoch. */
export function figuresOf(updates: readonly UpdateRow[]) {
  const reports = updates.map(({ report }) => report)
  const sum = (of: (one: (typeof reports)[number]) => number) => reports.reduce((total, one) => total + of(one), 0)
  const trajectories = sum(({ episodes }) => episodes)
  const mean = (of: Of<number | null>, weightOf: Of<number>) => {
    const known = reports.filter((one) => of(one) !== null)
    const weight = known.reduce((total, one) => total + weightOf(one), 0)
    return weight === 0 ? null : known.reduce((total, one) => total + of(one)! * weightOf(one), 0) / weight
  }
  const rewarded: Of<number> = (one) => one.rewarded
  const learned = reports.filter(({ metrics }) => 'loss' in metrics)
  return {
    trajectories,
    successRate: mean(
      ({ successRate }) => successRate,
      ({ judged }) => judged,
    ),
    reward: mean(({ reward }) => reward, rewarded),
    length: mean(({ length }) => length, rewarded),
    avgTokens:
      mean(
        ({ tokens }) => tokens,
        ({ episodes }) => episodes,
      ) ?? 0,
    loss: learned.at(-1)?.metrics.loss ?? null,
    metrics: meanMetrics(learned.map(({ metrics }) => metrics)),
    skippedGroups: sum(({ skippedGroups }) => skippedGroups),
    dropped: sum(({ dropped }) => dropped),
    dropReasons: sumOf(reports.map(({ dropReasons }) => dropReasons)),
    staleness: stalenessOf(reports.flatMap(({ staleness }) => staleness ?? [])),
    alarms: [...new Set(reports.flatMap(({ alarms }) => alarms))],
    collectMs: updates.reduce((total, { collectMs }) => total + collectMs, 0),
    trainMs: updates.reduce((total, { trainMs }) => total + trainMs, 0),
  }
}

function sumOf(all: readonly DropReasons[]): DropReasons {
  const sums: Record<string, number> = {}
  for (const [why, count] of all.flatMap((reasons) => Object.entries(reasons))) sums[why] = (sums[why] ?? 0) + count
  return sums
}

function stalenessOf(all: readonly Staleness[]): Staleness | null {
  if (all.length === 0) return null
  return {
    mean: all.reduce((total, { mean }) => total + mean, 0) / all.length,
    max: Math.max(...all.map(({ max }) => max)),
  }
}

function meanMetrics(all: readonly Metrics[]): Metrics {
  const names = new Set(all.flatMap((metrics) => Object.keys(metrics)))
  return Object.fromEntries(
    [...names].map((name) => {
      const values = all.flatMap((metrics) => metrics[name] ?? [])
      return [name, values.reduce((total, value) => total + value, 0) / values.length]
    }),
  )
}
