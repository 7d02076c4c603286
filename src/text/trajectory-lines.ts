import { isDeepStrictEqual } from 'node:util'
import type { BranchReason, OpenedBranch } from '../trajectory/branches.ts'
import { isWellFormed } from '../trajectory/shapes.ts'
import type { Step } from '../trajectory/step.ts'
import { branchOrder, type Placed } from './branch-order.ts'
import { toolLines } from './call-lines.ts'
import { oneLine } from './escape-controls.ts'
import { modelBlocks } from './model-lines.ts'
import { stepLines } from './step-lines.ts'
import { Talk } from './talk.ts'
import type { ValueLayout } from './value-lines.ts'
import { cut, displayWidth } from './width.ts'
import { wrap } from './wrap.ts'

/** The left margin of lines in a branch. */
const BAR = '│ '
const DEEPEST = 6
/** Branches are not indented further if fewer columns than this would be left. */
const NARROWEST = 32

const REASONS: Readonly<Record<BranchReason, string>> = {
  parallel: 'in parallel',
  serial: 'in series',
  subtask: 'a sub-task',
  compaction: 'continues with a shorter conversation',
  drift: 'continues with other tokens',
}

/** The steps of a task for a reader: model calls as conversations, tool calls with their results, branches indented. */
export function trajectoryLines(steps: readonly Step[], layout: ValueLayout): string[] {
  const isRead = new Set(steps.filter(isWellFormed))
  const talk = new Talk([...isRead], isDeepStrictEqual)
  const lines: string[] = []
  let last: { depth: number; airy: boolean } | undefined
  for (const placed of inOrder(steps, isRead)) {
    const depth = Math.min(placed.depth, DEEPEST, Math.max(0, Math.floor((layout.width - NARROWEST) / BAR.length)))
    const bars = BAR.repeat(depth)
    const inside = { ...layout, width: layout.width - bars.length }
    const { blocks, airy } = blocksOf(placed, isRead, talk, inside)
    for (const [place, block] of blocks.entries()) {
      // An empty line separates the head of a branch from the lines around the branch.
      const between = placed.step === undefined ? Math.max(0, depth - 1) : Math.min(depth, last?.depth ?? 0)
      if (last && (last.airy || airy))
        lines.push(layout.paint('dim', BAR.repeat(place === 0 ? between : depth).trimEnd()))
      // Not `push(...block)`: there may be more lines than a call can have arguments.
      for (const line of block) lines.push(bars === '' ? line : layout.paint('dim', bars) + line)
      last = { depth, airy }
    }
  }
  return lines
}

/** Malformed steps have no branch, so they come last. */
function* inOrder(steps: readonly Step[], isRead: ReadonlySet<Step>): Generator<Placed> {
  yield* branchOrder(steps.filter((step) => isRead.has(step)))
  for (const step of steps) if (!isRead.has(step)) yield { step, branch: undefined, depth: 0 }
}

/** The lines of a step, as blocks. `airy`: with empty lines around it. */
function blocksOf(
  { step, branch }: Placed,
  isRead: ReadonlySet<Step>,
  talk: Talk,
  layout: ValueLayout,
): { readonly blocks: readonly (readonly string[])[]; readonly airy: boolean } {
  if (step === undefined) return { blocks: [headLines(branch, layout)], airy: true }
  if (step.kind === 'model' && isRead.has(step)) return { blocks: modelBlocks(step, talk, layout), airy: true }
  if (step.kind === 'tool' && isRead.has(step)) return { blocks: [toolLines(step, layout)], airy: true }
  return { blocks: [stepLines(step, layout, branch)], airy: false }
}

function headLines({ id, agent, parent: { why } }: OpenedBranch, { paint, width }: ValueLayout): string[] {
  const name = cut(oneLine(agent), Math.max(1, width))
  const about = `${REASONS[why]} (branch ${id})`
  if (displayWidth(name) + 2 + about.length <= width) return [`${paint('bold', name)}  ${paint('dim', about)}`]
  return [paint('bold', name), ...wrap(about, width).map((row) => paint('dim', row))]
}
