import type { Range } from './task-filter.ts'

/** Ranges of values that cover all of them, and how many values are in each. */
export interface Histogram {
  /** One more than there are bins. */
  readonly edges: readonly number[]
  readonly isLog: boolean
  readonly counts: Uint32Array
  readonly quantiles: { readonly median: number; readonly p90: number; readonly max: number; readonly mean: number }
}

const BINS = 32
/** If the largest value is more than this many times the median, the bins are logarithmic. */
const SKEWED = 12

/** Undefined: there are no values. */
export function histogramOf(column: Float64Array, rows: Uint32Array): Histogram | undefined {
  const values = new Float64Array(rows.length)
  let count = 0
  let sum = 0
  for (const row of rows) {
    const value = column[row]!
    if (!Number.isFinite(value)) continue
    sum += value
    values[count++] = value
  }
  if (count === 0) return undefined
  const sorted = values.subarray(0, count).sort()
  const at = (share: number) => sorted[Math.min(count - 1, Math.floor(share * count))]!
  const quantiles = { median: at(0.5), p90: at(0.9), max: sorted[count - 1]!, mean: sum / count }
  const [low, high] = [sorted[0]!, quantiles.max]
  const isLog = low >= 0 && quantiles.median > 0 && high / quantiles.median > SKEWED
  const edges = isLog ? logEdges(Math.max(at(0.001), quantiles.median / 1e4), high) : linearEdges(low, high)
  return { edges, isLog, quantiles, counts: countIn(edges, column, rows) }
}

/** How many values are in each bin. */
export function countIn(edges: readonly number[], column: Float64Array, rows: Uint32Array): Uint32Array {
  const counts = new Uint32Array(edges.length - 1)
  for (const row of rows) {
    const value = column[row]!
    if (!Number.isFinite(value)) continue
    let [low, high] = [0, counts.length - 1]
    while (low < high) {
      const middle = (low + high + 1) >> 1
      if (value >= edges[middle]!) low = middle
      else high = middle - 1
    }
    counts[low]!++
  }
  return counts
}

/** The values of bins, from the first to the last one. The outermost bins have no limit. */
export const rangeOf = ({ edges }: Histogram, first: number, last = first): Range => ({
  low: first === 0 ? -Infinity : edges[first]!,
  high: last === edges.length - 2 ? Infinity : edges[last + 1]!,
})

function linearEdges(low: number, high: number): number[] {
  const step = niceStep((high - low || Math.abs(high) || 1) / BINS)
  // If all values are equal, there are empty bins around the only bar.
  const around = low === high ? 5 : 0
  const first = Math.floor(low / step) - around
  const count = Math.floor(high / step) + around - first + 1
  return Array.from({ length: count + 1 }, (_, place) => rounded((first + place) * step))
}

function logEdges(low: number, high: number): number[] {
  const from = Math.floor(8 * Math.log10(low))
  const perDecade = Math.min(16, Math.max(2, Math.floor((8 * BINS) / (8 * Math.log10(high) - from + 1))))
  const edges: number[] = []
  for (let exponent = Math.floor((from * perDecade) / 8); ; exponent++) {
    const edge = Number((10 ** (exponent / perDecade)).toPrecision(2))
    if (edge !== edges.at(-1)) edges.push(edge)
    if (edge > high) return edges
  }
}

/** 1, 2 or 5 times a power of ten. */
function niceStep(step: number): number {
  const size = 10 ** Math.floor(Math.log10(step))
  return rounded(([1, 2, 5].find((times) => times * size >= step) ?? 10) * size)
}

const rounded = (value: number) => Number(value.toPrecision(12))
