import type { Branch } from './branches.ts'
import type { Step } from './step.ts'
import type { TokenRow } from './token-rows.ts'

export interface PlacedRewards {
  /** For each row, one number for each token; other than 0 only where the mask is 1. */
  readonly rewards: readonly Float64Array[]
  /** The sum of what has no token to stand on: no row trains one. */
  readonly unplaced: number
}

interface Rewarded {
  readonly branches: readonly Branch[]
  readonly steps: readonly Step[]
  readonly grade: { readonly reward: number | null } | null
}

/**
 * The rewards of a trajectory, on the tokens of its rows. That of a step goes to the last token that was sampled at or before it: in its own
 * branch or, if there is none, in those that it comes from; failing that, to the first token that is sampled after it. So nothing is lost to
 * a mask. `'grade'`: instead, the reward of the grade, on the last token of all.
 */
export function rewardsOnTokens(
  trajectory: Rewarded,
  rows: readonly TokenRow[],
  of: 'steps' | 'grade' = 'steps',
): PlacedRewards {
  const rewards = rows.map(({ ids }) => new Float64Array(ids.length))
  const places = placesOf(trajectory.steps, rows)
  const branches = new Map(trajectory.branches.map((branch) => [branch.id, branch]))
  let unplaced = 0
  const put = (place: Place | undefined, reward: number) => {
    if (place === undefined) unplaced += reward
    else rewards[place.row]![place.token]! += reward
  }
  if (of === 'grade') put(places.all.at(-1), trajectory.grade?.reward ?? 0)
  else
    for (const step of trajectory.steps)
      if (step.reward !== undefined) put(placeFor(step, branches, places), step.reward)
  return { rewards, unplaced }
}

/** The last token of a completion that a row trains. */
interface Place {
  readonly step: number
  readonly row: number
  readonly token: number
}

interface Places {
  /** In the order of steps. */
  readonly all: readonly Place[]
  readonly byBranch: ReadonlyMap<number, readonly Place[]>
}

function placesOf(steps: readonly Step[], rows: readonly TokenRow[]): Places {
  const all: Place[] = []
  for (const [row, { spans }] of rows.entries())
    for (const { step, start, end, isTrained } of spans)
      if (isTrained && end > start) all.push({ step, row, token: end - 1 })
  all.sort((a, b) => a.step - b.step)
  const byBranch = Map.groupBy(all, ({ step }) => steps[step]?.branch ?? 0)
  return { all, byBranch }
}

function placeFor(step: Step, branches: ReadonlyMap<number, Branch>, { all, byBranch }: Places): Place | undefined {
  let number = step.branch ?? 0
  let upTo = step.index
  for (let levels = 0; levels <= branches.size; levels++) {
    const place = lastUpTo(byBranch.get(number) ?? [], upTo)
    if (place) return place
    const parent = branches.get(number)?.parent
    if (!parent) break
    number = parent.branch
    upTo = parent.step ?? step.index
  }
  return all[firstAfter(all, step.index)] ?? all.at(-1)
}

const lastUpTo = (places: readonly Place[], step: number): Place | undefined => places[firstAfter(places, step) - 1]

/** Where the first place after a step is: by halves, since a trajectory may have many. */
function firstAfter(places: readonly Place[], step: number): number {
  let low = 0
  let high = places.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (places[middle]!.step > step) high = middle
    else low = middle + 1
  }
  return low
}

/**
 * Moves rewards that stand where the mask is 0 to the last token before them where it is 1 or, before the first such token, to that.
 * What is computed over sampled tokens alone, such as returns and advantages, then misses none.
 */
export function moveRewards(rewards: ArrayLike<number>, mask: ArrayLike<number>): Float64Array {
  const moved = new Float64Array(rewards.length)
  let target = 0
  while (target < mask.length && mask[target] !== 1) target++
  // With nothing to stand on they stay where they are.
  if (target === mask.length) return moved.map((_, i) => rewards[i]!)
  for (let i = 0; i < rewards.length; i++) {
    if (mask[i] === 1) target = i
    moved[target]! += rewards[i]!
  }
  return moved
}
