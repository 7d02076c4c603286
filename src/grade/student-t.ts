/** The two-sided quantile of Student's t with `df` degrees of freedom (a whole number): P(|T| > result) = 1 - `confidence`. */
export function studentT(confidence: number, df: number): number {
  let high = 1
  while (within(high, df) < confidence) high *= 2
  let low = 0
  for (let round = 0; round < 100 && high - low > 1e-12 * high; round++) {
    const middle = (low + high) / 2
    if (within(middle, df) < confidence) low = middle
    else high = middle
  }
  return (low + high) / 2
}

/** P(|T| < t): for whole degrees of freedom a finite sum of positive terms (Abramowitz and Stegun, 26.7.3 and 26.7.4). */
function within(t: number, df: number): number {
  const angle = Math.atan(t / Math.sqrt(df))
  const [sin, cos] = [Math.sin(angle), Math.cos(angle)]
  const odd = df % 2 === 1
  let term = odd ? cos : 1
  let sum = df === 1 ? 0 : term
  // The terms decrease, finally geometrically: the rest does not change the sum.
  for (let k = odd ? 3 : 2; k < df && term > sum * 1e-17; k += 2) {
    term *= (cos * cos * (k - 1)) / k
    sum += term
  }
  return odd ? (2 / Math.PI) * (angle + sin * sum) : sin * sum
}
