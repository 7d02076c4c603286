import type { EvaluatedSplit } from '../../../src/store/trainings/training-rows.ts'
import type { TrainingDetails } from '../../../src/view/api.ts'
import type { ChartPoint, ChartSeries } from '../parts/chart.tsx'

export interface Estimated {
  readonly value: number
  readonly low: number
  readonly high: number
}

const SPLITS: readonly EvaluatedSplit[] = ['validation', 'test', 'off-task']

/** The success or reward of an evaluation. The store does not interpret summaries, so the fields are checked here. */
export function estimateIn(summary: unknown, name: 'success' | 'reward'): Estimated | undefined {
  const figure = (summary as Readonly<Record<string, Partial<Estimated> | null>> | null)?.[name]
  if (typeof figure?.value !== 'number') return undefined
  const { value, low, high } = figure
  return { value, low: typeof low === 'number' ? low : value, high: typeof high === 'number' ? high : value }
}

/** The first update in which a version acts: the one after the update that made it. */
export function firstUpdateOf({ versions, updates }: Pick<TrainingDetails, 'versions' | 'updates'>) {
  const first = new Map(versions.map(({ version, update }) => [version, update === null ? 0 : update + 1]))
  for (const { versionOut, number } of updates) if (versionOut !== null) first.set(versionOut, number + 1)
  return (version: number): number => first.get(version) ?? 0
}

/** Evaluations on the axis of updates, a series for each split. */
export function evaluationSeries(details: TrainingDetails, name: 'success' | 'reward'): ChartSeries[] {
  const firstUpdate = firstUpdateOf(details)
  return SPLITS.flatMap((split, place) => {
    const points = details.evaluations
      .filter((row) => row.split === split)
      .flatMap(({ version, summary }): ChartPoint[] => {
        const found = estimateIn(summary, name)
        return found ? [{ x: firstUpdate(version), y: found.value, low: found.low, high: found.high }] : []
      })
      .sort((a, b) => a.x - b.x)
    return points.length === 0 ? [] : [{ name: split, kind: 'points' as const, style: place + 1, points }]
  })
}
