/**
 * The mean, and the sum of squared distances from it. In two passes, because the difference of large sums would lose
 * precision.
 */
export function moments(values: ArrayLike<number>): { readonly mean: number; readonly squares: number } {
  let sum = 0
  for (let i = 0; i < values.length; i++) sum += values[i]!
  const mean = sum / values.length
  let squares = 0
  for (let i = 0; i < values.length; i++) {
    const distance = values[i]! - mean
    squares += distance * distance
  }
  return { mean, squares }
}
