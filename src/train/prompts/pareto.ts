/** The score of each validation task, in the same order for all candidates; null if unknown. */
export type Scores = readonly (number | null)[]

/**
 * The selection weight of each candidate: the number of fronts it is on. The front of a task consists of its best
 * candidates. A candidate that is redundant, because each of its fronts has another remaining one, gets 0; candidates
 * with the lowest mean are removed first, among equals the older. The remaining ones cover every task, so specialists
 * are kept beside generalists.
 */
export function frontWeights(candidates: readonly Scores[]): number[] {
  const tasks = candidates[0]?.length ?? 0
  const fronts = Array.from({ length: tasks }, (_, task) => frontOf(candidates, task))
  const alive = new Set(fronts.flatMap((front) => [...front]))
  const ascending = [...alive].sort((a, b) => meanScore(candidates[a]!) - meanScore(candidates[b]!) || a - b)
  for (const one of ascending) {
    const isCovered = fronts.every((front) => !front.has(one) || [...front].some((o) => o !== one && alive.has(o)))
    if (isCovered) alive.delete(one)
  }
  return candidates.map((_, one) => (alive.has(one) ? fronts.filter((front) => front.has(one)).length : 0))
}

function frontOf(candidates: readonly Scores[], task: number): ReadonlySet<number> {
  let best = Number.NEGATIVE_INFINITY
  let front: number[] = []
  for (const [one, scores] of candidates.entries()) {
    const score = scores[task] ?? Number.NEGATIVE_INFINITY
    if (score === Number.NEGATIVE_INFINITY || score < best) continue
    if (score > best) front = []
    best = score
    front.push(one)
  }
  return new Set(front)
}

/** The mean of the known scores; -Infinity if there are none. */
export function meanScore(scores: Scores): number {
  const known = scores.filter((score) => score !== null)
  return known.length === 0 ? Number.NEGATIVE_INFINITY : known.reduce((sum, score) => sum + score, 0) / known.length
}

/** Draws an index by weight. If all weights are 0, the last. */
export function pickByWeight(weights: readonly number[], random: number): number {
  let left = random * weights.reduce((sum, weight) => sum + weight, 0)
  for (const [index, weight] of weights.entries()) {
    if (left < weight) return index
    left -= weight
  }
  return weights.length - 1
}
