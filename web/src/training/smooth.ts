import type { ChartPoint } from '../parts/chart.tsx'

/** The mean of each value and the ones before it, `window` in all. */
export function movingAverage(points: readonly ChartPoint[], window: number): ChartPoint[] {
  let sum = 0
  return points.map(({ x, y }, place) => {
    sum += y - (place >= window ? points[place - window]!.y : 0)
    return { x, y: sum / Math.min(place + 1, window) }
  })
}
