import type { RunEnding } from './observer.ts'
import type { RunProgress } from './run-progress.ts'
import type { Tally } from './tally.ts'

/** What a summary says besides what was counted. */
export interface SummaryFacts {
  /** Left out: the run came to its end. */
  readonly ending?: RunEnding | undefined
  /** The run file; undefined without one. */
  readonly file?: string | undefined
  /** How long the run took, where the tally cannot know: it was made of stored rows. */
  readonly elapsedMs?: number | undefined
}

export interface SummaryData extends Omit<RunProgress, 'running' | 'perSecond' | 'etaMs'> {
  readonly ending: 'finished' | 'interrupted' | 'failed'
  readonly error: Error | undefined
  readonly file: string | undefined
  /** Tasks that are done per second of the whole run; restored ones do not count. */
  readonly perSecond: number | undefined
}

/** A run's end as plain data. */
export function summaryData(tally: Tally, facts: SummaryFacts = {}): SummaryData {
  const { running: _running, etaMs: _etaMs, ...progress } = tally.snapshot()
  const { ending, file, elapsedMs = progress.elapsedMs } = facts
  const ran = progress.done - progress.restored
  return {
    ...progress,
    ending: ending?.interrupted ? 'interrupted' : ending?.error ? 'failed' : 'finished',
    error: ending?.error,
    file,
    elapsedMs,
    perSecond: elapsedMs > 0 && ran > 0 ? (1000 * ran) / elapsedMs : undefined,
  }
}
