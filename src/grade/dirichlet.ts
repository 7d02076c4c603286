/**
 * The distribution of a mean under random weights: values a₁ … aₙ with weights drawn uniformly from all that sum to 1 (Dirichlet).
 * With two distinct values it is the beta distribution.
 */

/** Distinct values in ascending order, and the count of each. */
export interface Tally {
  readonly values: Float64Array
  readonly counts: Float64Array
}

/** More distinct values than this are put into this many bins, each represented by its mean. */
const MAX_DISTINCT = 1024

export function tallyOf(numbers: readonly number[]): Tally {
  const sorted = Float64Array.from(numbers).sort()
  const distinct = runs(sorted, (value) => value)
  if (distinct.values.length <= MAX_DISTINCT) return distinct
  const [low, high] = [sorted[0]!, sorted.at(-1)!]
  const bin = (value: number) => Math.min(MAX_DISTINCT - 1, Math.floor(((value - low) / (high - low)) * MAX_DISTINCT))
  return runs(sorted, bin)
}

function runs(sorted: Float64Array, keyOf: (value: number) => number): Tally {
  const values: number[] = []
  const counts: number[] = []
  let last = Number.NaN
  for (const value of sorted) {
    const key = keyOf(value)
    if (key === last) {
      const at = values.length - 1
      const count = ++counts[at]!
      values[at] = values[at]! + (value - values[at]!) / count
    } else {
      values.push(value)
      counts.push(1)
      last = key
    }
  }
  return { values: Float64Array.from(values), counts: Float64Array.from(counts) }
}

/** The width of a trapezoid, in units of the integrand's scale. It gives ten digits or more. */
const STEP = 0.14
/** The integrand falls at least like 1/u², and the variable grows exponentially: about 200 steps for a single value. */
const MAX_STEPS = 600
const NEGLIGIBLE = 1e-13
/** The largest bend of the path. Beyond it, the path would run along the poles. */
const MAX_BEND = 1

/**
 * The probability that the weighted mean is below `t`, for `t` up to its expectation.
 *
 * Uniform weights are exponential variables over their sum. So this asks whether Q = Σ gᵢ (t - aᵢ) is positive, where gᵢ is a
 * gamma variable whose shape is the count. Its generating function M(s) = Π (1 - s (t - aᵢ))^-cᵢ is known, and
 * P(Q > 0) = 1/2πi ∫ M(s)/s ds along any path between 0 and the first pole. Near the steepest one, a hyperbola through the
 * saddle point, the integrand is a bump that falls off fast, and the trapezoidal rule converges exponentially.
 */
export function probabilityBelow({ values, counts }: Tally, t: number): number {
  const n = values.length
  const reach = t - values[0]!
  if (reach <= 0) return 0
  const saddle = saddlePoint(values, counts, t, 1 / reach)
  // At the saddle point: the size of M, and the second and third derivative of log M(s)/s, which give width and bend.
  let logPeak = -Math.log(saddle)
  let second = 1 / saddle ** 2
  let third = -2 / saddle ** 3
  const slopes = new Float64Array(n)
  for (let i = 0; i < n; i++) {
    const b = t - values[i]!
    const slope = b / (1 - saddle * b)
    slopes[i] = slope
    logPeak -= counts[i]! * Math.log1p(-saddle * b)
    second += counts[i]! * slope ** 2
    third += counts[i]! * 2 * slope ** 3
  }
  const scale = 1 / Math.sqrt(second)
  const bend = Math.max(-MAX_BEND, Math.min(MAX_BEND, (third * scale) / (3 * second)))
  let sum = 0
  for (let step = 0; step < MAX_STEPS; step++) {
    const x = step * STEP
    const [sinh, cosh] = [Math.sinh(x), Math.cosh(x)]
    // The position on the path, relative to the saddle point.
    const re = scale * bend * (cosh - 1)
    const im = scale * sinh
    const square = re * re + im * im
    // First 1/s, then M(s), both relative to the saddle point: the logarithm of the absolute value, and the phase.
    let logSize = -0.5 * Math.log1p((2 * re + square / saddle) / saddle)
    let phase = -Math.atan2(im, saddle + re)
    for (let i = 0; i < n; i++) {
      const slope = slopes[i]!
      logSize -= 0.5 * counts[i]! * Math.log1p(slope * (slope * square - 2 * re))
      phase += counts[i]! * Math.atan2(im * slope, 1 - re * slope)
    }
    const size = Math.exp(logSize)
    sum += (step === 0 ? 0.5 : 1) * size * (Math.sin(phase) * bend * sinh + Math.cos(phase) * cosh)
    if (size * cosh < NEGLIGIBLE) break
  }
  return Math.min(1, Math.max(0, (Math.exp(logPeak) * scale * sum * STEP) / Math.PI))
}

/** The minimum of M(s)/s on the real line between 0 and `pole`. The function is convex there, and a rough result is enough. */
function saddlePoint(values: Float64Array, counts: Float64Array, t: number, pole: number): number {
  let [low, high] = [0, pole]
  for (let round = 0; round < 200 && high - low > 1e-3 * high; round++) {
    const s = (low + high) / 2
    let slope = -1 / s
    for (let i = 0; i < values.length; i++) {
      const b = t - values[i]!
      slope += (counts[i]! * b) / (1 - s * b)
    }
    if (slope > 0) high = s
    else low = s
  }
  return (low + high) / 2
}

/** Tolerance for the logarithm of the probability. */
const CLOSE = 1e-10
const ROUNDING = 1e-15

/**
 * The value below which the weighted mean lies with probability `p`, for `p` up to 1/e: the mean is below its expectation
 * with at least that probability (Grünbaum).
 */
export function quantile(tally: Tally, p: number): number {
  const { values, counts } = tally
  if (values.length === 1) return values[0]!
  const { mean, deviation } = moments(values, counts)
  let [low, high] = [values[0]!, mean]
  const wanted = Math.log(p)
  // Start where the quantile of a normal distribution would be, approximately.
  let t = mean - Math.sqrt(-2 * Math.log(2 * p)) * deviation
  let [before, gapBefore, wide] = [Number.NaN, Number.NaN, high - low]
  for (let round = 0; high - low > ROUNDING * Math.max(-low, high); round++) {
    // The secant method converges in a few steps, because the logarithm is smooth. If three steps do not halve the interval, bisect.
    if (!(t > low && t < high) || (round % 3 === 2 && high - low > wide / 2)) t = (low + high) / 2
    if (round % 3 === 2) wide = high - low
    if (t <= low || t >= high) break
    const gap = Math.log(probabilityBelow(tally, t)) - wanted
    if (Math.abs(gap) < CLOSE) return t
    if (gap < 0) low = t
    else high = t
    ;[t, before, gapBefore] = [t - (gap * (t - before)) / (gap - gapBefore), t, gap]
  }
  return (low + high) / 2
}

/** Mean and standard deviation of the weighted mean. */
function moments(values: Float64Array, counts: Float64Array): { mean: number; deviation: number } {
  let [n, mean, squares] = [0, 0, 0]
  for (let i = 0; i < values.length; i++) {
    const [value, count] = [values[i]!, counts[i]!]
    const off = value - mean
    n += count
    mean += (count / n) * off
    squares += count * off * (value - mean)
  }
  return { mean, deviation: Math.sqrt(squares / n / (n + 1)) }
}
