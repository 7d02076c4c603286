import type { Outcome } from '../grade/outcome.ts'
import { type EvaluationSummary, type SummaryOptions, summarizeOutcomes } from '../grade/summarize.ts'

/** The most outcomes that are kept before the first grade: most runs without a grader have no use for them. */
const MAX_UNGRADED = 100_000

/** Collects the outcomes of all tasks of a run, also of those that were not run, with a little data per rollout. */
export class EvaluationTally {
  readonly #outcomes: Outcome[] = []
  #isGraded = false

  add(outcome: Outcome): void {
    if (outcome.grade) this.#isGraded = true
    else if (!this.#isGraded && this.#outcomes.length >= MAX_UNGRADED) return
    const { usage: _, runMs: __, ...kept } = outcome
    this.#outcomes.push(kept)
  }

  /** Undefined if no answer is graded. */
  summary(): EvaluationSummary | undefined {
    return evaluationOf(this.#outcomes)
  }

  /** For a gate: undefined only if there are answers and none is graded. Without any answer, there is no result, but perhaps a grader. */
  gated(): EvaluationSummary | undefined {
    const isUngraded = this.#outcomes.some(({ status }) => status === 'success')
    return this.summary() ?? (isUngraded ? undefined : summarizeOutcomes(this.#outcomes))
  }
}

/** The evaluation of a run; undefined if no answer is graded. `outcomes`: of all its tasks, also of those that were not run. */
export function evaluationOf(
  outcomes: readonly Outcome[],
  options: SummaryOptions = {},
): EvaluationSummary | undefined {
  return outcomes.some(({ grade }) => grade !== undefined) ? summarizeOutcomes(outcomes, options) : undefined
}
