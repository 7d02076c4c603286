import { branchOrder } from '../../../src/text/branch-order.ts'
import { Talk } from '../../../src/text/talk.ts'
import type { Branch, OpenedBranch } from '../../../src/trajectory/branches.ts'
import { isSame } from './same-json.ts'
import type { ShownStep } from './shown-step.ts'

/** An item of the conversation, from top to bottom. `depth`: how many branches it is nested in. */
export type Item =
  | { readonly kind: 'step'; readonly shown: ShownStep; readonly depth: number }
  | { readonly kind: 'branch'; readonly branch: Branch | OpenedBranch; readonly depth: number }

export interface Story {
  readonly items: readonly Item[]
  readonly talk: Talk
  /** The position of each step in `items`. */
  readonly placeOf: ReadonlyMap<number, number>
}

/** Orders steps for a reader: each branch as a whole, after the step at which it starts. */
export function storyOf(list: readonly ShownStep[], branches: readonly Branch[]): Story {
  const wellFormed = list.filter(({ isWellFormed }) => isWellFormed)
  const steps = wellFormed.map(({ step }) => step)
  const shownOf = new Map(wellFormed.map((shown) => [shown.step, shown]))
  const known = new Map(branches.map((branch) => [branch.id, branch]))
  const items: Item[] = []
  const heads = new Set<number>()
  for (const { step, branch, depth } of branchOrder(steps)) {
    if (step) items.push({ kind: 'step', shown: shownOf.get(step)!, depth })
    else {
      heads.add(branch.id)
      items.push({ kind: 'branch', branch: known.get(branch.id) ?? branch, depth })
    }
  }
  // Sub-tasks have only a head here, because their steps are on their own pages.
  for (const branch of branches)
    if (branch.parent !== null && branch.task !== undefined && !heads.has(branch.id))
      items.push({ kind: 'branch', branch, depth: 1 })
  for (const shown of list) if (!shown.isWellFormed) items.push({ kind: 'step', shown, depth: 0 })
  const placeOf = new Map<number, number>()
  for (const [place, item] of items.entries()) if (item.kind === 'step') placeOf.set(item.shown.step.index, place)
  return { items, talk: new Talk(steps, isSame), placeOf }
}
