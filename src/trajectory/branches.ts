import type { Ending } from './episode.ts'
import type { Step } from './step.ts'

/**
 * A sequence of steps in a trajectory. Branch 0 is that of the task's agent; others belong to sub-agents of a group, to
 * sub-tasks, or to an agent that continued with another conversation.
 */
export interface Branch {
  readonly id: number
  readonly agent: string
  /** Null for branch 0. */
  readonly parent: BranchParent | null
  /** The id of the sub-task, if the branch is one. */
  readonly task?: string
  /** How the branch ended, if it has its own end: an episode of a sub-agent, or a sub-task. */
  readonly end?: BranchEnd
}

/** Where a branch left another. */
export interface BranchParent {
  readonly branch: number
  /** The step of the parent branch after which this one starts. Null: before its first step, or unknown. */
  readonly step: number | null
  readonly why: BranchReason
}

/** `compaction`: the agent continued with a shorter conversation. `drift`: a reply came back with other tokens. */
export type BranchReason = 'parallel' | 'serial' | 'subtask' | 'compaction' | 'drift'

/** How a branch ended. */
export interface BranchEnd {
  readonly ending: Ending | { readonly kind: 'failed' | 'cancelled'; readonly error: unknown }
  readonly finalObservation?: unknown
  readonly reward: number | null
  readonly success: boolean | null
}

/** A branch as its first step declares it. */
export interface OpenedBranch {
  readonly id: number
  readonly agent: string
  readonly parent: BranchParent
}

/** The property of a context that identifies its branch and opens others. */
export const BRANCHES: unique symbol = Symbol.for('manyworlds.branches')

/** Where a context records its steps. */
export interface BranchPlace {
  /** The branch of the context's own steps. */
  readonly number: number
  /** Opens a branch and returns its number, for `branch` of the steps that belong to it. */
  open(opening: BranchOpening): number
}

export interface BranchSource {
  readonly [BRANCHES]: BranchPlace
}

export interface BranchOpening {
  readonly why: BranchReason
  /** Default: the agent that opens the branch. */
  readonly agent?: string
  /** The parent branch. Default: that of the agent that opens the branch. */
  readonly from?: number
  /** The step of the parent branch after which the branch starts. Default: the last one so far. */
  readonly step?: number | null
  /** For groups, which number their sub-agents in advance. */
  readonly number?: number
  /** The sub-agent of a group that opens the branch, and how many numbers the group has reserved; set by the contexts in between. */
  readonly owner?: number
  readonly taken?: number
}

/** Opens a branch of a trajectory, for agents that this package defines. */
export const openBranch = (ctx: object, opening: BranchOpening): number => (ctx as BranchSource)[BRANCHES].open(opening)

/**
 * The branches of an attempt. Their numbers do not depend on timing: sub-agents of groups are numbered by position, from 1 to
 * n - 1; the k-th branch that agent number b opens beyond that is b + k·n.
 */
export class Branches implements BranchPlace {
  readonly number = 0
  readonly #agent: () => string
  readonly #opened = new Map<number, number>()
  /** Branches that no step has declared yet. */
  readonly #undeclared = new Map<number, OpenedBranch>()
  /** The last step of each branch that has one. */
  readonly #last = new Map<number, number>()

  /** `agent`: the name of the task's agent. `steps`: how many steps it has already recorded, all in branch 0. */
  constructor(agent: () => string, steps: number) {
    this.#agent = agent
    if (steps > 0) this.#last.set(0, steps - 1)
  }

  open({ why, from = 0, agent = this.#agent(), step, number, owner = 0, taken = 1 }: BranchOpening): number {
    const id = number ?? owner + this.#next(owner) * taken
    const after = step === undefined ? (this.#last.get(from) ?? null) : step
    this.#undeclared.set(id, { id, agent, parent: { branch: from, step: after, why } })
    return id
  }

  #next(owner: number): number {
    const next = (this.#opened.get(owner) ?? 0) + 1
    this.#opened.set(owner, next)
    return next
  }

  /** The branches that the next step of a branch must declare: the branch itself and its parents, the outermost first. */
  undeclared(branch: number): OpenedBranch[] | undefined {
    if (this.#undeclared.size === 0) return undefined
    const opens: OpenedBranch[] = []
    for (let id = branch, one = this.#undeclared.get(id); one; one = this.#undeclared.get(id)) {
      opens.unshift(one)
      id = one.parent.branch
    }
    return opens.length === 0 ? undefined : opens
  }

  /** Call this after a step was recorded. */
  recorded(step: number, branch: number, opens: readonly OpenedBranch[] | undefined): void {
    this.#last.set(branch, step)
    for (const { id } of opens ?? []) this.#undeclared.delete(id)
  }
}

/** The branches of steps, by number. A branch is unknown if neither it nor a child branch has a step. */
export function branchesOf(agent: string, steps: readonly Step[]): Branch[] {
  const found = new Map<number, Branch>([[0, { id: 0, agent, parent: null }]])
  for (const step of steps) {
    for (const branch of step.opens ?? []) if (!found.has(branch.id)) found.set(branch.id, branch)
    const own = step.kind === 'note' && step.ends ? found.get(step.branch ?? 0) : undefined
    if (own && step.kind === 'note') found.set(own.id, { ...own, end: step.ends! })
  }
  return [...found.values()].sort((a, b) => a.id - b.id)
}
