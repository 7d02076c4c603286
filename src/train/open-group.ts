import { ManyworldsError } from '../errors.ts'
import type { Trajectory } from '../trajectory/trajectory.ts'
import { HeldGroup } from './held-group.ts'
import { compareRollouts } from './rollout-order.ts'

/**
 * Computes advantages from the rewards of groups: `grpo`, `rloo`, or your own function. Called with one group at a
 * time, whose rewards are in the order of `compareRollouts`.
 */
export type AdvantageRule = (groups: readonly Float64Array[]) => { readonly advantages: readonly ArrayLike<number>[] }

interface Member {
  readonly trajectory: Trajectory
  readonly reward: number
  readonly failed: boolean
}

/** A group that is still waiting for members. */
export class OpenGroup {
  readonly order: number
  readonly key: string
  readonly id: string
  readonly run: string | null
  /** Ids of all added trajectories, including those that were not kept. */
  readonly seen = new Set<string>()
  readonly members: Member[] = []

  constructor(order: number, key: string, { run, group, id }: Pick<Trajectory, 'run' | 'group' | 'id'>) {
    this.order = order
    this.key = key
    this.id = group?.id ?? id
    this.run = run
  }

  /** Closes the group and fixes its advantages. */
  close(rule: AdvantageRule): HeldGroup {
    // Sorted, because floating-point sums depend on the order, and the order of arrival must not matter.
    const members = this.members.toSorted((a, b) => compareRollouts(a.trajectory, b.trajectory))
    const rewards = members.map(({ reward }) => reward)
    const advantages = this.#advantages(rule, rewards)
    const failed = members.map((member) => member.failed)
    return new HeldGroup(
      { order: this.order, key: this.key, id: this.id, run: this.run, rewards, advantages, failed },
      members.map(({ trajectory }) => trajectory),
    )
  }

  #advantages(rule: AdvantageRule, rewards: readonly number[]): number[] {
    const [given] = rule([Float64Array.from(rewards)]).advantages
    const advantages = Array.from(given ?? [])
    if (advantages.length === rewards.length && advantages.every(Number.isFinite)) return advantages
    throw new ManyworldsError(
      'CONFIG_INVALID',
      `\`advantages\` returned [${advantages.join(', ')}] for group '${this.id}' with the rewards [${rewards.join(', ')}]: it must return one finite number per reward`,
    )
  }
}

/** Group ids are unique only within a run. */
export const groupKey = ({ run, group, task, visit, id }: Trajectory): string =>
  JSON.stringify(group === null ? [run, visit, task, id] : [run, visit, group.id])
