import { DOCUMENT_GRADER } from '../export/atif/imported.ts'
import type { TaskGrade } from '../grade/grade.ts'
import { checkTrajectory } from '../trajectory/check.ts'
import type { Step } from '../trajectory/step.ts'
import { trajectoryOf } from '../trajectory/trajectory-of.ts'
import { totalUsage, type Usage } from '../trajectory/usage.ts'

/** A trajectory from elsewhere, as the store takes it. */
export interface ImportedTrajectory {
  readonly id: string
  readonly agent: string
  readonly input: unknown
  readonly metadata: Readonly<Record<string, unknown>>
  readonly groupId?: string
  readonly rollout?: number
  readonly steps: readonly Step[]
  readonly answer: unknown
  /** Why it did not succeed; left out: it did. */
  readonly error?: { readonly code: string; readonly name: string; readonly message: string }
  readonly cancelled?: boolean
  readonly grade?: TaskGrade
  readonly ms: number
}

export const usageOf = ({ steps }: ImportedTrajectory): Usage => totalUsage(steps)

/** What is broken about it, in plain words; see `checkTrajectory`. */
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

/** The reward that the file gives. */
export const gradeOf = (reward: unknown, success: unknown): TaskGrade | undefined =>
  typeof reward === 'number' || typeof success === 'boolean'
    ? {
        reward: typeof reward === 'number' ? reward : null,
        success: typeof success === 'boolean' ? success : null,
        grader: { name: DOCUMENT_GRADER },
      }
    : undefined
