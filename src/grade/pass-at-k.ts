/**
 * The probability that at least one of `k` rollouts solves the task: the unbiased estimate from `n` rollouts of which `c` did,
 * 1 - C(n-c, k) / C(n, k), the share of all choices of k that contain a success.
 */
export function passAtK(n: number, c: number, k: number): number {
  if (n - c < k) return 1
  let allFail = 1
  // Compute the quotient factor by factor, because the binomial coefficients overflow.
  for (let i = n - c + 1; i <= n; i++) allFail *= 1 - k / i
  return 1 - allFail
}
