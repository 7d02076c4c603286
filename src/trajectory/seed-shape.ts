import type { ModelStep, Step } from './step.ts'
import type { TrajectoryParts } from './trajectory.ts'

/** A trajectory with the fields of AWorld's Python recipe. */
export interface SeedTrajectory {
  readonly taskId: string
  readonly agentId: string
  readonly steps: readonly SeedStep[]
  /** The answer or, if there is none, the last observation. */
  readonly finalResult: unknown
  /** The result of the grader or, without one, of the environment; null: unknown. */
  readonly success: boolean | null
  /** The number of tokens that the agent's model generated. */
  readonly tokenCount: number
  /** In seconds. */
  readonly executionTime: number
  readonly metadata: Readonly<Record<string, unknown>>
}

export interface SeedStep {
  readonly step: number
  readonly action: unknown
  readonly observation: unknown
  readonly tokens: number
  readonly reward?: number
}

export function seedShape(trajectory: TrajectoryParts): SeedTrajectory {
  const { task, agent, steps, answer, finalObservation, episode, grade, ms, meta } = trajectory
  return {
    taskId: task,
    agentId: agent,
    steps: steps.map(seedStep),
    finalResult: answer === undefined ? finalObservation : answer,
    success: (grade ?? episode)?.success ?? null,
    tokenCount: steps.reduce((sum, step) => sum + tokensOf(step), 0),
    executionTime: ms / 1000,
    metadata: meta,
  }
}

function seedStep(step: Step): SeedStep {
  const { index, reward } = step
  const rewarded = reward === undefined ? {} : { reward }
  return { step: index, ...doneAndSeen(step), tokens: tokensOf(step), ...rewarded }
}

function doneAndSeen(step: Step): { action: unknown; observation: unknown } {
  switch (step.kind) {
    case 'model':
      return { action: actionOf(step), observation: step.request.added.at(-1)?.content }
    case 'tool':
      return {
        action: { tool: step.name, arguments: step.arguments.value ?? step.arguments.raw },
        observation: step.error === undefined ? step.result : { error: step.error },
      }
    default:
      return { action: step.action, observation: step.observation }
  }
}

const actionOf = ({ reply }: ModelStep) =>
  reply.calls && reply.calls.length > 0 ? { content: reply.content, calls: reply.calls } : reply.content

/** Counts token ids or, if the server does not return them, uses its count. Excludes judges and simulated users. */
function tokensOf(step: Step): number {
  if (step.kind === 'model' && step.role !== 'agent') return 0
  if (step.kind === 'model' && step.tokens) return step.tokens.completion.length
  return step.usage?.outputTokens ?? 0
}
