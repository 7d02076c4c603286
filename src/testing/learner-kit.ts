import type { Choice, OpenPolicy } from '../agents/policy.ts'
import { randomFrom } from '../random.ts'
import type { Learner, Published } from '../train/learner.ts'
import type { ActionRow } from '../train/row.ts'

/** What the kit tests. */
export interface LearnerFactory {
  /** Makes a learner that has learned nothing. */
  learner(): Learner | Promise<Learner>
  /** Opens what it published. */
  open(bytes: Uint8Array): OpenPolicy | Promise<OpenPolicy>
}

export interface LearnerKitOptions {
  /** So many updates of 64 episodes must be enough to learn the two small tasks. Default 60. */
  readonly updates?: number
  /** False: it draws from the rows by their places, so another order gives another version. Default true. */
  readonly anyOrder?: boolean
}

export interface LearnerCase {
  /** A promise, as a user would notice it. */
  readonly name: string
  run(kit: LearnerFactory & Required<LearnerKitOptions>): Promise<void>
}

/** A task of one decision. */
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

/** Which of three is right depends on what is seen; they all are right equally often. */
export const lights: Problem = {
  observations: [{ light: 'red' }, { light: 'amber' }, { light: 'green' }],
  candidates: ['stop', 'wait', 'go'],
  reward: (seen, action) =>
    ({ red: 'stop', amber: 'wait', green: 'go' })[(seen as { light: string }).light] === action ? 1 : 0,
}

const EPISODES = 64

/** Decisions of a version, with rewards less their mean as advantages. */
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
    behaviour: choice.logProb!,
    advantage: reward - mean,
    return: reward,
    weight: 1 / EPISODES,
  }))
}

/** Updates one after another, each from episodes of the version before. */
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

/** The mean reward of a version, on decisions that it was not trained on. */
export async function score(kit: LearnerFactory, published: Published, problem: Problem): Promise<number> {
  const parts = await Promise.all([1001, 1002, 1003, 1004].map((part) => collect(kit, published, problem, part)))
  const returns = parts.flat().map((row) => row.return!)
  return returns.reduce((sum, value) => sum + value, 0) / returns.length
}
