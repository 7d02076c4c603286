import { Trajectory, type TrajectoryParts } from '../../dist/trajectory/trajectory.js'

export interface RolloutOf {
  readonly run?: string | null
  readonly group?: string
  readonly size?: number | null
  readonly rollout?: number
  /** Left out: 0. */
  readonly rewards?: readonly number[]
  readonly reward?: number | null
  readonly failed?: string
  readonly cancelled?: boolean
  readonly more?: Partial<TrajectoryParts>
}

/** A trajectory of a step agent, as a run would give it. */
export function rollout(of: RolloutOf = {}): Trajectory {
  const { run = 'r1', group = 'g', size = 4, rollout = 1, rewards = [0, 0], failed, cancelled, more } = of
  const reward = of.reward === undefined ? rewards.reduce((sum, one) => sum + one, 0) : of.reward
  const error = { code: failed ?? 'TASK_CANCELLED', name: 'Error', message: 'no' }
  const ending =
    failed === undefined && !cancelled
      ? ({ kind: 'terminated' } as const)
      : { kind: cancelled ? ('cancelled' as const) : ('failed' as const), error }
  return new Trajectory({
    ...{ id: rollout === 1 ? group : `${group}@${rollout}`, run, task: group, agent: 'a', split: null },
    group: { id: group, size },
    ...{ visit: 0, rollout, attempt: 1, seed: 0, branches: [{ id: 0, agent: 'a', parent: null }] },
    steps: rewards.map((one, index) => ({
      ...{ index, atMs: index, kind: 'action', observation: { at: index }, candidates: ['l', 'r'], action: 'r' },
      ...{ choice: 1, logProb: -0.5, mode: 'sample', policy: { name: 'p', version: 3 }, reward: one },
    })),
    ending,
    episode: ending.kind === 'terminated' ? { reward, success: null } : null,
    ...{ grade: null, digest: null, usage: {}, ms: 1, meta: {} },
    ...more,
  })
}

/** The rollouts of a group, with these rewards. */
export const groupOf = (group: string, rewards: readonly number[], of: RolloutOf = {}): Trajectory[] =>
  rewards.map((reward, place) =>
    rollout({ group, size: rewards.length, rollout: place + 1, rewards: [0, reward], ...of }),
  )
