import type { Ending } from './episode.ts'
import type { Step } from './step.ts'

/**
 * A line of steps in a trajectory. The task's own is 0; others belong to sub-agents of a group, to sub-tasks, or to an agent
 * that went on with another conversation.
 */
export interface Branch {
  readonly id: number
  readonly agent: string
  /** Null: it is the task's own. */
  readonly parent: BranchParent | null
  /** Of a sub-task: its id. */
  readonly task?: string
  /** How it ended, where it has an end of its own: an episode of a sub-agent, or a sub-task. */
  readonly end?: BranchEnd
}

export interface BranchParent {
  readonly branch: number
  /** The step of that branch after which it began; null: before its first step, or nobody knows. */
  readonly step: number | null
  readonly why: BranchReason
}

/** `compaction`: an agent went on with a shorter conversation. `drift`: the tokens of a reply came back as others. */
export type BranchReason = 'parallel' | 'serial' | 'subtask' | 'compaction' | 'drift'

export interface BranchEnd {
  readonly ending: Ending | { readonly kind: 'failed' | 'cancelled'; readonly error: unknown }
  readonly finalObservation?: unknown
  readonly reward: number | null
  readonly success: boolean | null
}

/** A branch as the first step of it declares it. */
export interface OpenedBranch {
  readonly id: number
  readonly agent: string
  readonly parent: BranchParent
}

/** Under this a context says which branch it is, and opens others. */
export const BRANCHES: unique symbol = Symbol.for('manyworlds.branches')

/** Where the steps of a context go. */
export interface BranchPlace {
  /** The branch of its own steps. */
  readonly number: number
  /** Opens a branch and returns its number, for `branch` of the steps that belong to it. */
  open(opening: BranchOpening): number
}

export interface BranchSource {
  readonly [BRANCHES]: BranchPlace
}

export interface BranchOpening {
  readonly why: BranchReason
  /** Left out: the agent that opens it. */
  readonly agent?: string
  /** The branch that it comes from; left out: that of the agent that opens it. */
  readonly from?: number
  /** The step of that branch after which it begins; left out: the last one so far. */
  readonly step?: number | null
  /** For groups, whose sub-agents are numbered in advance. */
  readonly number?: number
  /** The sub-agent of a group that opens it, and how many numbers the group has taken; set by contexts on the way. */
  readonly owner?: number
  readonly taken?: number
}

/** Opens a branch of a trajectory, on behalf of an agent that was made by this package. */
export const openBranch = (ctx: object, opening: BranchOpening): number => (ctx as BranchSource)[BRANCHES].open(opening)

/**
 * The branches of an attempt. Their numbers do not depend on time: sub-agents of groups are numbered by their places, from 1 to
 * n - 1; the k-th branch that the agent with the number b opens beyond that is b + k·n.
 */
export class Branches implements BranchPlace {
  readonly number = 0
  readonly #agent: () => string
  readonly #opened = new Map<number, number>()
  /** Those that no step has declared yet. */
  readonly #undeclared = new Map<number, OpenedBranch>()
  /** The last step of each branch that has one. */
  readonly #last = new Map<number, number>()

  /** `agent`: the name of the task's agent. `steps`: how many it has recorded before, all in its own branch. */
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

  /** What the next step of a branch has to declare: the branch and those that it comes from, the outermost first. */
  undeclared(branch: number): OpenedBranch[] | undefined {
    if (this.#undeclared.size === 0) return undefined
    const opens: OpenedBranch[] = []
    for (let id = branch, one = this.#undeclared.get(id); one; one = this.#undeclared.get(id)) {
      opens.unshift(one)
      id = one.parent.branch
    }
    return opens.length === 0 ? undefined : opens
  }

  /** A step was recorded. */
  recorded(step: number, branch: number, opens: readonly OpenedBranch[] | undefined): void {
    this.#last.set(branch, step)
    for (const { id } of opens ?? []) this.#undeclared.delete(id)
  }
}

/** The branches of steps, by number; those without a step, and without one in a branch that comes from them, are not known. */
export function branchesOf(agent: string, steps: readonly Step[]): Branch[] {
  const found = new Map<number, Branch>([[0, { id: 0, agent, parent: null }]])
  for (const step of steps) {
    for (const branch of step.opens ?? []) if (!found.has(branch.id)) found.set(branch.id, branch)
    const own = step.kind === 'note' && step.ends ? found.get(step.branch ?? 0) : undefined
    if (own && step.kind === 'note') found.set(own.id, { ...own, end: step.ends! })
  }
  return [...found.values()].sort((a, b) => a.id - b.id)
}
