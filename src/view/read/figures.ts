import type { Outcome } from '../../grade/outcome.ts'
import { type EvaluationSummary, OutcomeResults } from '../../grade/summarize.ts'
import { outcomePage } from '../../store/paged/outcome-pages.ts'
import type { PagedRun } from '../../store/paged/paged-run.ts'
import type { RolloutOptions } from '../../store/rollout-rows.ts'
import { spentUsage } from '../../store/spent-usage.ts'
import type { RunFigures } from '../api.ts'
import { Turns } from './turns.ts'

const PAGE_ROWS = 500
/** The most unsolved tasks that an evaluation lists: the worst. */
const MOST_UNSOLVED = 1000

interface Scan {
  readonly results: OutcomeResults
  readonly isGraded: boolean
}

/** The outcomes of a run, page by page. */
export async function* outcomePages(
  run: PagedRun,
  signal: AbortSignal,
  wanted: RolloutOptions = {},
): AsyncGenerator<readonly Outcome[]> {
  const turns = new Turns()
  for (let after: number | undefined = 0; after !== undefined; ) {
    const { outcomes, next } = outcomePage(run, after, PAGE_ROWS, wanted)
    yield outcomes
    after = next
    await turns.next(signal)
  }
}

/** Reads the outcomes of all tasks of a run. */
async function scan(run: PagedRun, signal: AbortSignal): Promise<Scan> {
  const results = new OutcomeResults()
  let isGraded = false
  for await (const page of outcomePages(run, signal))
    for (const outcome of page) {
      isGraded ||= outcome.grade !== undefined
      results.add(outcome)
    }
  return { results, isGraded }
}

/** Success and reward have intervals, so they are given only for runs that are graded. */
export async function runFigures(run: PagedRun, signal: AbortSignal): Promise<RunFigures> {
  const { results, isGraded } = await scan(run, signal)
  const usage = run.reading(() => spentUsage(run.db, run.run))
  if (!isGraded) return { usage }
  const { success, reward } = results.summary({ passAt: [] })
  return { ...(success && { success }), ...(reward && { reward }), usage }
}

/** Null: nothing is graded. */
export async function evaluationOf(run: PagedRun, signal: AbortSignal): Promise<EvaluationSummary | null> {
  const { results, isGraded } = await scan(run, signal)
  return isGraded ? shortSummary(results) : null
}

export function shortSummary(results: OutcomeResults): EvaluationSummary {
  const summary = results.summary()
  return {
    ...summary,
    unsolvedTasks: summary.unsolvedTasks.slice(0, MOST_UNSOLVED),
    ungradedTasks: summary.ungradedTasks.slice(0, MOST_UNSOLVED),
  }
}
