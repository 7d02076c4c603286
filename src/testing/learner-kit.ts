import type { Choice, OpenPolicy } from '../agents/policy.ts'
import { randomFrom } from '../random.ts'
import type { Learner, Published } from '../train/learner.ts'
import type { ActionRow } from '../train/row.ts'

/** The learner under test. */
export interface LearnerFactory {
  /** Makes an untrained learner. */
  learner(): Learner | Promise<Learner>
  /** Opens published bytes. */
  open(bytes: Uint8Array): OpenPolicy | Promise<OpenPolicy>
}

export interface LearnerKitOptions {
  /** The number of updates, of 64 episodes each, in which it must learn the two small tasks. Default 60. */
  readonly updates?: number
  /** False: it samples rows by position, so another order gives another version. Default true. */
  readonly anyOrder?: boolean
}

export interface LearnerCase {
  /** A guarantee, as a user would notice it. */
  readonly name: string
  run(kit: LearnerFactory & Required<LearnerKitOptions>): Promise<void>
}

/** A task with one decision. */
export interface Problem {
  readonly observations: readonly unknown[]
  readonly candidates: readonly unknown[]
  reward(observation: unknown, action: unknown, random: () => number): number
}

/** One arm pays four times as often as the other. */
export const bandit: Problem = {
  observations: ['two arms'],
  candidates: ['left', 'right'],
  reward: (_, action, random) => (random() < (action === 'right' ? 0.8 : 0.2) ? 1 : 0),
}

/** Which of three actions is right depends on the observation; all are right equally often. */
export const lights: Problem = {
  observations: [{ light: 'red' }, { light: 'amber' }, { light: 'green' }],
  candidates: ['stop', 'wait', 'go'],
  reward: (seen, action) =>
    ({ red: 'stop', amber: 'wait', green: 'go' })[(seen as { light: string }).light] === action ? 1 : 0,
}

const EPISODES = 64

/** Collects decisions of a version. Advantages are rewards minus their mean. */
export async function collect(
  { open }: LearnerFactory,
  { ref, bytes }: Published,
  problem: Problem,
  update: number,
): Promise<ActionRow[]> {
  const policy = await open(bytes!)
  const { observations, candidates } = problem
  const taken: { observation: unknown; choice: Choice; reward: number }[] = []
  for (let i = 0; i < EPISODES; i++) {
    const random = randomFrom({ seed: 'kit', purpose: 'run', stream: '', task: `${update}`, visit: 0, rollout: i + 1 })
    const observation = observations[i % observations.length]
    const choice = await policy.act!({
      ...{ observation, candidates, mode: 'sample', random, step: 0, task: { id: `${i}`, input: observation } },
      signal: new AbortController().signal,
    })
    taken.push({ observation, choice, reward: problem.reward(observation, choice.action, random) })
  }
  const mean = taken.reduce((sum, { reward }) => sum + reward, 0) / EPISODES
  return taken.map(({ observation, choice, reward }) => ({
    ...{ kind: 'action', observation, candidates, action: choice.action, version: ref.version },
    index: choice.index ?? candidates.indexOf(choice.action),
    behavior: choice.logProb!,
    advantage: reward - mean,
    return: reward,
    weight: 1 / EPISODES,
  }))
}

/** Makes updates one after the other, each from episodes of the previous version. */
export async function learn(
  kit: LearnerFactory & Required<LearnerKitOptions>,
  learner: Learner,
  problem: Problem,
  updates = kit.updates,
): Promise<Published> {
  let published = await learner.publish()
  for (let update = 0; update < updates; update++) {
    const rows = await collect(kit, published, problem, update)
    await learner.update({ rows })
    published = await learner.publish()
  }
  return published
}

/** The mean reward of a version, on decisions that it was not trained with. */
export async function score(kit: LearnerFactory, published: Published, problem: Problem): Promise<number> {
  const parts = await Promise.all([1001, 1002, 1003, 1004].map((part) => collect(kit, published, problem, part)))
  const returns = parts.flat().map((row) => row.return!)
  return returns.reduce((sum, value) => sum + value, 0) / returns.length
}
