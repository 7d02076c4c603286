import type { Branch } from './branches.ts'
import type { Step } from './step.ts'
import type { TokenRow } from './token-rows.ts'

export interface PlacedRewards {
  /** For each row, one number per token; nonzero only where the mask is 1. */
  readonly rewards: readonly Float64Array[]
  /** The sum of rewards that have no token, because no row trains one. */
  readonly unplaced: number
}

export interface Rewarded {
  readonly branches: readonly Branch[]
  readonly steps: readonly Step[]
  readonly grade: { readonly reward: number | null } | null
}

/**
 * Assigns the rewards of a trajectory to the tokens of its rows. The reward of a step goes to the last token sampled at or
 * before it: in its own branch or, if there is none, in its parents; otherwise to the first token sampled after it. So no
 * reward is lost to a mask. `'grade'`: assigns the reward of the grade to the last token of all instead.
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
  /** Sorted by step. */
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

/** The index of the first place after a step, by binary search, because a trajectory may have many. */
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
 * Moves rewards from tokens with mask 0 to the last token before them with mask 1 or, if there is none, to the first such
 * token. Returns and advantages that are computed over sampled tokens only then include every reward.
 */
export function moveRewards(rewards: ArrayLike<number>, mask: ArrayLike<number>): Float64Array {
  const moved = new Float64Array(rewards.length)
  let target = 0
  while (target < mask.length && mask[target] !== 1) target++
  // Without a sampled token, the rewards stay where they are.
  if (target === mask.length) return moved.map((_, i) => rewards[i]!)
  for (let i = 0; i < rewards.length; i++) {
    if (mask[i] === 1) target = i
    moved[target]! += rewards[i]!
  }
  return moved
}
