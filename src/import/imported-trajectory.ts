import { DOCUMENT_GRADER } from '../export/atif/imported.ts'
import type { TaskGrade } from '../grade/grade.ts'
import { checkTrajectory } from '../trajectory/check.ts'
import type { Step } from '../trajectory/step.ts'
import { trajectoryOf } from '../trajectory/trajectory-of.ts'
import { totalUsage, type Usage } from '../trajectory/usage.ts'

/** A trajectory from outside, as the store accepts it. */
export interface ImportedTrajectory {
  readonly id: string
  readonly agent: string
  readonly input: unknown
  readonly metadata: Readonly<Record<string, unknown>>
  readonly groupId?: string
  readonly rollout?: number
  readonly steps: readonly Step[]
  readonly answer: unknown
  /** Why it did not succeed. Left out: it succeeded. */
  readonly error?: { readonly code: string; readonly name: string; readonly message: string }
  readonly cancelled?: boolean
  readonly grade?: TaskGrade
  readonly ms: number
}

export const usageOf = ({ steps }: ImportedTrajectory): Usage => totalUsage(steps)

/** Returns its problems; see `checkTrajectory`. */
export function problemsOf(imported: ImportedTrajectory): string[] {
  const { id, agent, steps, answer, grade, rollout, groupId, ms } = imported
  const usage = usageOf(imported)
  const response = {
    id,
    agentName: agent,
    status: 'success',
    answer,
    usage,
    timing: { runMs: ms },
    attempts: 1,
  } as const
  const group = { ...(rollout !== undefined && { rollout }), ...(groupId !== undefined && { groupId }) }
  return checkTrajectory(trajectoryOf({ ...response, ...group, ...(grade && { grade }) }, steps))
}

/** The grade from the reward and success in the file. */
export const gradeOf = (reward: unknown, success: unknown): TaskGrade | undefined =>
  typeof reward === 'number' || typeof success === 'boolean'
    ? {
        reward: typeof reward === 'number' ? reward : null,
        success: typeof success === 'boolean' ? success : null,
        grader: { name: DOCUMENT_GRADER },
      }
    : undefined
