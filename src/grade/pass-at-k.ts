/**
 * How probable it is that at least one of `k` rollouts solves the task, estimated without bias from `n` rollouts of which `c` did:
 * 1 - C(n-c, k) / C(n, k), the share of all choices of k that hold a success.
 */
export function passAtK(n: number, c: number, k: number): number {
  if (n - c < k) return 1
  let allFail = 1
  // The quotient of the binomial coefficients, factor by factor: the coefficients themselves overflow.
  for (let i = n - c + 1; i <= n; i++) allFail *= 1 - k / i
  return 1 - allFail
}
