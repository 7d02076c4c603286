/** List scheduling: each goes, in this order, to the slot that is free first. How long all of them take. */
export function makespan(durations: readonly number[], slots: number): number {
  // A heap of the times at which slots are free, the earliest first.
  const free = new Float64Array(slots)
  for (const duration of durations) {
    let at = 0
    const until = free[0]! + duration
    for (;;) {
      let child = 2 * at + 1
      if (child >= slots) break
      if (child + 1 < slots && free[child + 1]! < free[child]!) child++
      if (free[child]! >= until) break
      free[at] = free[child]!
      at = child
    }
    free[at] = until
  }
  return Math.max(...free)
}
