/** The score of each validation task, in one order for all candidates; null: nobody could tell. */
export type Scores = readonly (number | null)[]

/**
 * How often each candidate is to be picked, relative to the others: on how many fronts it is. The front of a task has the candidates that are best
 * at it. One that is nowhere needed, because on each of its fronts there is another that stays, has 0: the candidate with the lowest mean goes
 * first, of equals the older. So what stays covers every task, and a specialist stays beside a generalist.
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

/** Of those that are known; without any, less than all others. */
export function meanScore(scores: Scores): number {
  const known = scores.filter((score) => score !== null)
  return known.length === 0 ? Number.NEGATIVE_INFINITY : known.reduce((sum, score) => sum + score, 0) / known.length
}

/** A place, by weights. If all are 0, the last: there is nothing to choose by. */
export function pickByWeight(weights: readonly number[], random: number): number {
  let left = random * weights.reduce((sum, weight) => sum + weight, 0)
  for (const [place, weight] of weights.entries()) {
    if (left < weight) return place
    left -= weight
  }
  return weights.length - 1
}
