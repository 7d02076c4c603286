/** Spreads workers over nodes in proportion to their capacity. */
export function share(wanted: number, capacities: readonly number[]): number[] {
  const shares = capacities.map(() => 0)
  let left = Math.min(
    wanted,
    capacities.reduce((sum, capacity) => sum + capacity, 0),
  )
  while (left > 0) {
    // The least full one; of two equally full, the larger.
    let best = -1
    for (let i = 0; i < capacities.length; i++) {
      if (shares[i]! >= capacities[i]!) continue
      if (best < 0) best = i
      const [ours, theirs] = [(shares[i]! + 1) / capacities[i]!, (shares[best]! + 1) / capacities[best]!]
      if (ours < theirs) best = i
    }
    shares[best]!++
    left--
  }
  return shares
}
