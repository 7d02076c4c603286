import type { Episode } from '../trajectory/episode.ts'
import type { Step } from '../trajectory/step.ts'

/** The input of a grader. */
export interface GradeSample<Input = unknown, Answer = unknown> {
  readonly answer: Answer
  /** The expected solution of the task. No agent sees it. */
  readonly groundTruth: unknown
  readonly task: {
    readonly id: string
    readonly input: Input
    readonly tools?: readonly string[]
    readonly metadata?: Readonly<Record<string, unknown>>
    readonly groupId?: string
    readonly rollout?: number
  }
  /** How the episode ended, for agents in environments. */
  readonly episode?: Episode
  /** The steps, for graders with `trajectory: true`. */
  readonly trajectory?: readonly Step[]
}
