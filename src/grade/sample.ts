import type { Episode } from '../trajectory/episode.ts'
import type { Step } from '../trajectory/step.ts'

/** What a grader is given. */
export interface GradeSample<Input = unknown, Answer = unknown> {
  readonly answer: Answer
  /** The expected solution, as the task has it. No agent ever sees it. */
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
