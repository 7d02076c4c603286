import type { EvaluationSummary } from '../grade/summarize.ts'
import type { RunEnding } from './observer.ts'
import type { RunProgress } from './run-progress.ts'
import type { Tally } from './tally.ts'

/** The state of a run. `died`: its driver was killed. */
export type RunState = 'running' | 'finished' | 'interrupted' | 'died' | 'failed'

/** The facts of a summary that the tally does not have. */
export interface SummaryFacts {
  /** How the run has just ended. If both `ending` and `state` are left out, it finished. */
  readonly ending?: RunEnding | undefined
  /** The state of a run that is read from its file, instead of `ending`. */
  readonly state?: RunState | undefined
  readonly error?: string | undefined
  /** The duration of the run, if the tally was made from stored rows and does not know it. */
  readonly elapsedMs?: number | undefined
  /** The run file; undefined without one. */
  readonly file?: string | undefined
  /** The evaluation, if the tally does not have it. */
  readonly evaluation?: EvaluationSummary | undefined
}

export interface SummaryData extends Omit<RunProgress, 'running' | 'etaMs' | 'waiting'> {
  readonly state: RunState
  readonly error: Error | string | undefined
  readonly file: string | undefined
  /** Lines that tasks printed in this session and that were not shown. */
  readonly hiddenLines: number
  /** The mean rate of the whole run, without restored tasks. */
  readonly perSecond: number | undefined
  /** The evaluation; undefined if no answer is graded. */
  readonly evaluation: EvaluationSummary | undefined
}

/** The summary of a run as plain data. */
export function summaryData(tally: Tally, facts: SummaryFacts = {}): SummaryData {
  const { running: _running, etaMs: _etaMs, waiting: _waiting, ...progress } = tally.snapshot()
  const { ending, file, elapsedMs = progress.elapsedMs } = facts
  const state = facts.state ?? (ending?.interrupted ? 'interrupted' : ending?.error ? 'failed' : 'finished')
  const ran = progress.done - progress.restored
  const perSecond = state !== 'died' && elapsedMs > 0 && ran > 0 ? (1000 * ran) / elapsedMs : undefined
  const evaluation = facts.evaluation ?? tally.evaluation()
  const { hiddenLines = 0 } = ending ?? {}
  return {
    ...progress,
    state,
    error: facts.error ?? ending?.error,
    file,
    hiddenLines,
    elapsedMs,
    perSecond,
    evaluation,
  }
}
