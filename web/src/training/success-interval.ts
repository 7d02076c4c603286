const Z = 1.96

/**
 * The 95 % interval of a mean of shares from 0 to 1, by Wilson's formula. It uses the number of tasks, which gives the
 * widest interval: rollouts of one task are not independent, so their number is ignored.
 */
export function widestInterval(share: number, tasks: number): { readonly low: number; readonly high: number } {
  const squared = (Z * Z) / tasks
  const middle = (share + squared / 2) / (1 + squared)
  const half = (Z / (1 + squared)) * Math.sqrt((share * (1 - share)) / tasks + squared / (4 * tasks))
  return { low: Math.max(0, Math.min(share, middle - half)), high: Math.min(1, Math.max(share, middle + half)) }
}
