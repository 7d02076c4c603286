import type { OpenedBranch } from '../trajectory/branches.ts'
import type { Step } from '../trajectory/step.ts'

/** A step, or the head of a branch. `depth`: how many branches it is nested in. */
export type Placed =
  | { readonly step: Step; readonly branch: OpenedBranch | undefined; readonly depth: number }
  | { readonly step?: undefined; readonly branch: OpenedBranch; readonly depth: number }

interface Frame {
  readonly branch: OpenedBranch | undefined
  readonly depth: number
  readonly items: readonly (Step | OpenedBranch)[]
  next: number
}

/**
 * Orders steps for a reader. The steps of concurrent sub-agents interleave, so each branch is shown as a whole, after the
 * step at which it starts. Branches that no step opened, or that form a cycle, come last.
 */
export function* branchOrder(steps: readonly Step[]): Generator<Placed> {
  const opened = new Map<number, OpenedBranch>()
  const ofBranch = new Map<number, Step[]>()
  for (const step of steps) {
    for (const branch of step.opens ?? []) if (branch.id !== 0 && !opened.has(branch.id)) opened.set(branch.id, branch)
    const { branch = 0 } = step
    const own = ofBranch.get(branch)
    if (own) own.push(step)
    else ofBranch.set(branch, [step])
  }
  const children = new Map<number, OpenedBranch[]>()
  for (const branch of opened.values()) {
    const siblings = children.get(branch.parent.branch)
    if (siblings) siblings.push(branch)
    else children.set(branch.parent.branch, [branch])
  }
  const seen = new Set<number>()
  const frame = (id: number, depth: number): Frame => {
    seen.add(id)
    const own = ofBranch.get(id) ?? []
    return { branch: opened.get(id), depth, items: withBranches(own, children.get(id) ?? []), next: 0 }
  }
  function* from(first: Frame): Generator<Placed> {
    // Not recursive, because branches can be nested thousands deep: one for each time an agent compacts its conversation.
    for (const stack = [first]; stack.length > 0; ) {
      const top = stack.at(-1)!
      const item = top.items[top.next++]
      if (item === undefined) stack.pop()
      else if ('atMs' in item) yield { step: item, branch: top.branch, depth: top.depth }
      else if (!seen.has(item.id)) {
        const depth = top.depth + (goesOn(item, top) ? 0 : 1)
        yield { branch: item, depth }
        stack.push(frame(item.id, depth))
      }
    }
  }
  yield* from(frame(0, 0))
  for (const id of ofBranch.keys()) {
    if (seen.has(id)) continue
    const branch = opened.get(id)
    if (branch) yield { branch, depth: 1 }
    yield* from(frame(id, branch ? 1 : 0))
  }
}

/** The steps of a branch, each followed by the branches that start there. */
function withBranches(steps: readonly Step[], branches: readonly OpenedBranch[]): (Step | OpenedBranch)[] {
  const after = new Map<number | null, OpenedBranch[]>()
  const known = new Set(steps.map(({ index }) => index))
  const inOrder = branches.toSorted((a, b) => a.id - b.id)
  const late: OpenedBranch[] = []
  for (const branch of inOrder) {
    const { step } = branch.parent
    if (step !== null && !known.has(step)) late.push(branch)
    else if (after.has(step)) after.get(step)!.push(branch)
    else after.set(step, [branch])
  }
  return [...(after.get(null) ?? []), ...steps.flatMap((step) => [step, ...(after.get(step.index) ?? [])]), ...late]
}

/** Whether a branch only continues its parent: the same agent with another conversation, and no further steps in the parent. */
const goesOn = ({ parent: { why } }: OpenedBranch, { items, next }: Frame): boolean =>
  (why === 'compaction' || why === 'drift') && next === items.length
