import type { EvaluationSummary } from '../grade/summarize.ts'
import type { RunEnding } from './observer.ts'
import type { RunProgress } from './run-progress.ts'
import type { Tally } from './tally.ts'

/** As the run stands now; of one that `died` nobody has heard the end. */
export type RunState = 'running' | 'finished' | 'interrupted' | 'died' | 'failed'

/** What a summary says besides what was counted. */
export interface SummaryFacts {
  /** How the run has just ended. Left out, like `state`: it came to its end. */
  readonly ending?: RunEnding | undefined
  /** Of a run that is looked at later, instead of `ending`. */
  readonly state?: RunState | undefined
  readonly error?: string | undefined
  /** How long the run took, where the tally cannot know: it was made of stored rows. */
  readonly elapsedMs?: number | undefined
  /** The run file; undefined without one. */
  readonly file?: string | undefined
  /** How good the answers are, where the tally cannot know. */
  readonly evaluation?: EvaluationSummary | undefined
}

export interface SummaryData extends Omit<RunProgress, 'running' | 'etaMs' | 'waiting'> {
  readonly state: RunState
  readonly error: Error | string | undefined
  readonly file: string | undefined
  /** Of the whole run; restored tasks do not count. */
  readonly perSecond: number | undefined
  /** How good the answers are; undefined if nobody has graded them. */
  readonly evaluation: EvaluationSummary | undefined
}

/** How a run went as plain data. */
export function summaryData(tally: Tally, facts: SummaryFacts = {}): SummaryData {
  const { running: _running, etaMs: _etaMs, waiting: _waiting, ...progress } = tally.snapshot()
  const { ending, file, elapsedMs = progress.elapsedMs } = facts
  const state = facts.state ?? (ending?.interrupted ? 'interrupted' : ending?.error ? 'failed' : 'finished')
  const ran = progress.done - progress.restored
  const perSecond = state !== 'died' && elapsedMs > 0 && ran > 0 ? (1000 * ran) / elapsedMs : undefined
  const evaluation = facts.evaluation ?? tally.evaluation()
  return { ...progress, state, error: facts.error ?? ending?.error, file, elapsedMs, perSecond, evaluation }
}
