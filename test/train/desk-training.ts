import { randomFrom } from '../../dist/random.js'
import { grpo } from '../../dist/train/advantages.js'
import { type Algorithm, checkedAlgorithm } from '../../dist/train/algorithm.js'
import { gradientLearner } from '../../dist/train/gradient-learner.js'
import type { Metrics } from '../../dist/train/learner.js'
import type { ActionRow } from '../../dist/train/row.js'
import { softmaxCore } from '../../dist/train/softmax/softmax-core.js'
import type { OpenSoftmaxPolicy, SoftmaxPolicy } from '../../dist/train/softmax/softmax-policy.js'
import { type DeskObservation, type DeskTask, desk, deskTasks } from '../../examples/tool-desk/desk.ts'

type Act = OpenSoftmaxPolicy<DeskObservation, string>['act']
type Decision = Pick<ActionRow, 'observation' | 'candidates' | 'action' | 'index' | 'behavior'>

const MAX_STEPS = 10

/** One episode, without workers: the environment is called directly. */
function episode(task: DeskTask, act: Act, random: () => number, mode: 'sample' | 'greedy' = 'sample') {
  const ctx = undefined as never
  let { observation, candidates, state } = desk.reset({ id: '', input: task }, ctx) as ReturnType<typeof resetOf>
  const decisions: Decision[] = []
  let reward = 0
  for (let step = 0; step < MAX_STEPS; step++) {
    const { action, index, logProb } = act({ observation, candidates, mode, random })
    decisions.push({ observation, candidates, action, index: index!, behavior: logProb! })
    const result = desk.step(state, action, ctx) as ReturnType<typeof stepOf>
    reward += result.reward
    observation = result.observation
    candidates = result.candidates
    if (result.done) break
  }
  return { decisions, reward }
}
declare function resetOf(): { state: never; observation: DeskObservation; candidates: string[] }
declare function stepOf(): { observation: DeskObservation; candidates: string[]; reward: number; done: boolean }

export interface DeskTraining {
  readonly policy: SoftmaxPolicy<DeskObservation, string>
  readonly algorithm: Algorithm
  readonly seed: number
  readonly updates: number
  readonly tasksPerUpdate?: number
  readonly rollouts?: number
  /** Of all rewards of an update, to see that nothing is learned from chance. */
  readonly shuffleRewards?: boolean
}

/** GRPO on the training compositions of the tool desk. Yields the version, its bytes and the metrics after each update. */
export async function* trainDesk(training: DeskTraining) {
  const { policy, seed, updates, tasksPerUpdate = 16, rollouts = 8 } = training
  checkedAlgorithm(training.algorithm)
  const learner = gradientLearner(softmaxCore(policy), training.algorithm)
  let { ref, bytes } = await learner.start({ seed })
  const tasks = deskTasks({ part: 'train', count: updates * tasksPerUpdate, seed })
  for (let update = 0; update < updates; update++) {
    const { act } = policy.openBytes(bytes)
    const groups = tasks.slice(update * tasksPerUpdate, (update + 1) * tasksPerUpdate).map((task, at) =>
      Array.from({ length: rollouts }, (_, i) => {
        const key = { seed, purpose: 'run', stream: 'policy', task: `${update}.${at}`, visit: 0, rollout: i + 1 }
        return episode(task, act, randomFrom(key))
      }),
    )
    const rewards = groups.map((group) => group.map(({ reward }) => reward))
    if (training.shuffleRewards) shuffle(rewards, seed, update)
    const { advantages } = grpo(rewards)
    const rows = groups.flatMap((group, g) =>
      group.flatMap(({ decisions }, i): ActionRow[] =>
        advantages[g]![i] === 0
          ? []
          : decisions.map((decision) => ({
              ...{ kind: 'action', ...decision, advantage: advantages[g]![i]!, version: ref.version },
              weight: 1 / (tasksPerUpdate * rollouts),
            })),
      ),
    )
    const metrics: Metrics = await learner.update({ rows })
    ;({ ref, bytes } = await learner.publish())
    const count = tasksPerUpdate * rollouts
    yield { update: update + 1, reward: sum(rewards.flat()) / count, metrics, ref, bytes }
  }
}

/** How often a version solves tasks whose compositions training has never seen. */
export function heldOutSuccess(
  policy: SoftmaxPolicy<DeskObservation, string>,
  bytes: Uint8Array | null,
  { tasks = 500, rollouts = 1, seed = 99, mode = 'sample' as 'sample' | 'greedy' } = {},
): number {
  const { act } = policy.openBytes(bytes)
  const rewards = deskTasks({ part: 'held-out', count: tasks, seed }).flatMap((task, at) =>
    Array.from({ length: rollouts }, (_, i) => {
      const key = { seed, purpose: 'evaluate', stream: 'policy', task: `${at}`, visit: 0, rollout: i + 1 }
      return episode(task, act, randomFrom(key), mode).reward
    }),
  )
  return sum(rewards) / rewards.length
}

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0)

function shuffle(rewards: number[][], seed: number, update: number): void {
  const random = randomFrom({ seed, purpose: 'shuffle', stream: '', task: '', visit: update, rollout: 1 })
  const all = rewards.flat()
  for (const group of rewards)
    for (const i of group.keys()) group[i] = all.splice(Math.floor(random() * all.length), 1)[0]!
}
