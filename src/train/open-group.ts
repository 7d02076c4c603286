import { ManyworldsError } from '../errors.ts'
import type { Trajectory } from '../trajectory/trajectory.ts'
import { HeldGroup } from './held-group.ts'
import { compareRollouts } from './rollout-order.ts'

/**
 * Makes advantages of the rewards of groups: `grpo`, `rloo`, or one of your own. Called with one group at a time, whose rewards are in the order of
 * `compareRollouts`.
 */
export type AdvantageRule = (groups: readonly Float64Array[]) => { readonly advantages: readonly ArrayLike<number>[] }

interface Member {
  readonly trajectory: Trajectory
  readonly reward: number
  readonly failed: boolean
}

/** A group to which members may come. */
export class OpenGroup {
  readonly order: number
  readonly key: string
  readonly id: string
  readonly run: string | null
  /** All that have come, also those that are not kept. */
  readonly seen = new Set<string>()
  readonly members: Member[] = []

  constructor(order: number, key: string, { run, group, id }: Pick<Trajectory, 'run' | 'group' | 'id'>) {
    this.order = order
    this.key = key
    this.id = group?.id ?? id
    this.run = run
  }

  /** Its advantages are fixed now, whatever happens to other groups later. */
  close(rule: AdvantageRule): HeldGroup {
    // The order in which they came must not show: sums of floating-point numbers depend on it.
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
      `\`advantages\` gave [${advantages.join(', ')}] for group '${this.id}' with the rewards [${rewards.join(', ')}]: it must give as many finite numbers`,
    )
  }
}

/** Ids of groups are those of their run. */
export const groupKey = ({ run, group, task, visit, id }: Trajectory): string =>
  JSON.stringify(group === null ? [run, visit, task, id] : [run, visit, group.id])
