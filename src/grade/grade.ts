import type { Usage } from '../trajectory/usage.ts'

/** The result of a grader. */
export interface Grade {
  /** How good the answer is; null: unknown. */
  readonly reward: number | null
  /** The parts of the reward by name, with values and weights. */
  readonly parts?: Readonly<Record<string, GradePart>>
  /** Whether the answer counts as solved; null or left out: unknown. */
  readonly success?: boolean | null
  /** What was wrong, for people and for learners that read texts. */
  readonly feedback?: string
}

/** One criterion of a grade. */
export interface GradePart {
  readonly value: number
  readonly weight: number
}

/** The grade of a response, with its grader. */
export interface TaskGrade extends Grade {
  readonly success: boolean | null
  /** The name of the grader and a hash of its source and options. Without a grader: the name of the agent. */
  readonly grader: { readonly name: string; readonly sha256?: string }
  /** Why there is no grade: the grader threw, hung, crashed, or returned an invalid value. `reward` is null then. */
  readonly error?: GradingError
  /** What the grader used, if it called models or recorded usage. */
  readonly usage?: Usage
}

/** Why an answer has no grade. */
export interface GradingError {
  readonly code: GradingErrorCode
  readonly message: string
}

/** Codes of answers that could not be graded. */
export type GradingErrorCode =
  | 'GRADER_THREW'
  | 'GRADER_TIMEOUT'
  | 'GRADER_CRASHED'
  | 'GRADER_BLOCKED_WORKER'
  | 'GRADE_INVALID'
  | 'GRADING_CANCELLED'
  /** Its grader has not answered yet: the run goes on, or ended before. */
  | 'GRADING_PENDING'
