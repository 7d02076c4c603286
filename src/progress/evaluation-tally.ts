import type { Outcome } from '../grade/outcome.ts'
import { type EvaluationSummary, summarizeOutcomes } from '../grade/summarize.ts'

/** The most failures that are kept before the first grade. */
const MAX_UNGRADED = 100_000

/** Collects the outcomes of graded runs, with a little data per rollout. */
export class EvaluationTally {
  #outcomes: Outcome[] = []
  #isGraded = false

  add(outcome: Outcome): void {
    if (outcome.grade) this.#isGraded = true
    // Tasks that failed before the first grade count too.
    else if (!this.#isGraded && (outcome.status === 'success' || this.#outcomes.length >= MAX_UNGRADED)) return
    const { usage: _, runMs: __, ...kept } = outcome
    this.#outcomes.push(kept)
  }

  /** Undefined if the run is not graded. */
  summary(): EvaluationSummary | undefined {
    return this.#isGraded ? summarizeOutcomes(this.#outcomes) : undefined
  }
}
