import type { Outcome } from '../grade/outcome.ts'
import { type EvaluationSummary, summarizeOutcomes } from '../grade/summarize.ts'

/** How many failures to keep of a run that has no grade yet. */
const MAX_UNGRADED = 100_000

/** What the rollouts of a run came to, for runs that are graded; it keeps a little of each. */
export class EvaluationTally {
  #outcomes: Outcome[] = []
  #isGraded = false

  add(outcome: Outcome): void {
    if (outcome.grade) this.#isGraded = true
    // Tasks that failed before the first was graded count too.
    else if (!this.#isGraded && (outcome.status === 'success' || this.#outcomes.length >= MAX_UNGRADED)) return
    const { usage: _, runMs: __, ...kept } = outcome
    this.#outcomes.push(kept)
  }

  /** Undefined if nobody grades the run. */
  summary(): EvaluationSummary | undefined {
    return this.#isGraded ? summarizeOutcomes(this.#outcomes) : undefined
  }
}
