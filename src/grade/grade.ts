/** What a grader says about an answer. */
export interface Grade {
  /** How good it is; null: it cannot be told. */
  readonly reward: number | null
  /** What the reward is made of, by name: values and their weights. */
  readonly parts?: Readonly<Record<string, GradePart>>
  /** Whether it counts as solved; null or left out: the grader does not say. */
  readonly success?: boolean | null
  /** A text for people, and for learners that read: what was wrong. */
  readonly feedback?: string
}

export interface GradePart {
  readonly value: number
  readonly weight: number
}

/** The grade of a response: what its grader said, and who that was. */
export interface TaskGrade extends Grade {
  readonly success: boolean | null
  /** Its name, and a hash of its source and options; the environment's name where that alone says how it went. */
  readonly grader: { readonly name: string; readonly sha256?: string }
  /** Why there is no grade: the grader threw, hung, crashed, or returned something else. `reward` is null then. */
  readonly error?: GradingError
}

export interface GradingError {
  readonly code: GradingErrorCode
  readonly message: string
}

export type GradingErrorCode =
  | 'GRADER_THREW'
  | 'GRADER_TIMEOUT'
  | 'GRADER_CRASHED'
  | 'GRADER_BLOCKED_WORKER'
  | 'GRADE_INVALID'
  | 'GRADING_CANCELLED'
