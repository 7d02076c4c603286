import { judgementOf } from '../../grade/judgement.ts'
import type { Outcome } from '../../grade/outcome.ts'
import { trainingReward } from '../failed-rollouts.ts'
import type { LearnerGroup } from '../learner.ts'

/** By task; null if unknown. */
export type Rewards = Readonly<Record<string, number | null>>

/** The mean reward of each task. Failures of the agent count as 0; failures of its environment or model are ignored. */
export const meanRewards = (groups: readonly LearnerGroup[]): Rewards =>
  Object.fromEntries(
    groups.map(({ id, members }) => [id, mean(members.map((one) => trainingReward(one, 'zero').reward))]),
  )

/** The same for the outcomes of an evaluation. */
export function scoresOf(outcomes: readonly Outcome[], tasks: readonly string[]): Record<string, number | null> {
  const byTask = Map.groupBy(outcomes, ({ taskId }) => taskId)
  return Object.fromEntries(tasks.map((task) => [task, mean((byTask.get(task) ?? []).map(scoreOf))]))
}

/** What versions are selected by: the mean over tasks of what the search compares. */
export const meanScore = (outcomes: readonly Outcome[]): number | null =>
  mean(Object.values(scoresOf(outcomes, [...new Set(outcomes.map(({ taskId }) => taskId))])))

function scoreOf(outcome: Outcome): number | null {
  const { reward, solved } = judgementOf(outcome)
  return reward ?? (solved === false ? 0 : null)
}

const mean = (rewards: readonly (number | null)[]): number | null => {
  const known = rewards.filter((reward) => reward !== null)
  return known.length === 0 ? null : known.reduce((sum, reward) => sum + reward, 0) / known.length
}

/**
 * Whether the child did better than its parent on the same tasks, paired by task. If a task has a reward from the
 * parent but none from the child, they cannot be compared, and the child is rejected.
 */
export function isBetterOn(parent: Rewards, child: Rewards): boolean {
  let gain = 0
  for (const [task, before] of Object.entries(parent)) {
    if (before === null) continue
    const after = child[task] ?? null
    if (after === null) return false
    gain += after - before
  }
  return gain > ROUNDING
}

/** Tolerance for rounding errors of sums. */
const ROUNDING = 1e-9
