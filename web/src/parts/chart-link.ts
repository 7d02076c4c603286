import { type Signal, useSignal } from '@preact/signals'
import { useMemo } from 'preact/hooks'

/** What several charts with the same x axis share. */
export interface ChartLink {
  /** The x at which the charts show their values; null: nowhere, they show the last ones. */
  readonly cursor: Signal<number | null>
  /** The cursor when no pointer is over a chart. */
  readonly pinned: Signal<number | null>
  /** The part of the x axis that is shown; null: all. */
  readonly range: Signal<readonly [low: number, high: number] | null>
}

export function useChartLink(): ChartLink {
  const [cursor, pinned] = [useSignal<number | null>(null), useSignal<number | null>(null)]
  const range = useSignal<readonly [number, number] | null>(null)
  return useMemo(() => ({ cursor, pinned, range }), [])
}
