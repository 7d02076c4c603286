import { type Signal, useSignal } from '@preact/signals'
import { useMemo } from 'preact/hooks'

/** State that charts with the same x axis share. */
export interface ChartLink {
  /** The x at which the charts show their values; null: they show the last values. */
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
