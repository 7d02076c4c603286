import type { Trajectory, TrajectoryParts } from '../../trajectory/trajectory.ts'
import type { Answered, LearnerGroup, LearnerTraining, Published, Question } from '../learner.ts'
import { type AskedAnswer, askingAgent } from './asking-agent.ts'
import type { Learned, LearnedFrom, Trainer } from './learning-trainer.ts'
import { plainReport } from './plain-report.ts'
import type { SelfDirectedLearner } from './self-directed-learner.ts'
import type { TrainingRuns } from './training-runs.ts'

interface Parts {
  readonly learner: SelfDirectedLearner
  readonly seed: number
  readonly training: LearnerTraining
  readonly runs: TrainingRuns
}

/** The trainer for learners that read trajectories instead of rows. */
export class GroupTrainer implements Trainer {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  start(state: Uint8Array | undefined): Promise<Published> {
    const { learner, seed, training } = this.#parts
    return learner.start({ seed, training, ...(state && { state }) })
  }

  async learn(batch: readonly TrajectoryParts[], from: LearnedFrom): Promise<Learned> {
    const { learner } = this.#parts
    const groups = groupsOf(batch as readonly Trajectory[], from)
    const ask = (question: Question) => this.#ask(question, from)
    const metrics = await learner.update({ rows: [], groups, update: from.number, ask })
    const published = await learner.publish()
    const report = { ...plainReport(batch, published.ref.version), trained: batch.length, metrics }
    return { report, published, state: await learner.save() }
  }

  save(): Promise<Uint8Array> {
    return this.#parts.learner.save()
  }

  /** The user made the learner and must dispose of it. */
  async close(): Promise<void> {}

  async #ask({ model, ...question }: Question, { run, isResumed }: LearnedFrom): Promise<Answered> {
    const task = askingAgent.withParams({ model }).task(question, { id: 'ask' })
    const { answer, error, usage } = await this.#parts.runs.ask(`${run}.reflect`, task, isResumed)
    return { text: (answer as AskedAnswer | undefined)?.text ?? null, usage, ...(error && { error: error.message }) }
  }
}

/** One group per task, in the order of the plan. */
function groupsOf(batch: readonly Trajectory[], { tasks, by }: LearnedFrom): LearnerGroup[] {
  const byTask = Map.groupBy(batch, ({ task }) => task)
  return tasks.map(({ id, input }) => ({ id, ref: by.ref, members: byTask.get(id) ?? [], input }))
}
