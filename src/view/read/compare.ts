import { ComparedOutcomes, compareOutcomes } from '../../grade/compare.ts'
import type { Outcome } from '../../grade/outcome.ts'
import { type EvaluationSummary, OutcomeResults } from '../../grade/summarize.ts'
import { TaskNumbers } from '../../grade/task-means.ts'
import type { PagedRun } from '../../store/paged/paged-run.ts'
import type { ComparedRuns, ComparedSide, ComparedTask, TaskState } from '../api.ts'
import { outcomePages, shortSummary } from './figures.ts'

/** The most tasks that a comparison lists: flips first, then those that differ most. */
const MOST_ROWS = 20_000

/** Compares two runs task by task. `anyway`: also runs with other tasks or graders. */
export async function comparedRuns(
  a: PagedRun,
  b: PagedRun,
  signal: AbortSignal,
  anyway = false,
): Promise<ComparedRuns> {
  const [ofA, ofB] = [await scanned(a, signal), await scanned(b, signal)]
  const comparison = compareOutcomes(ofA.outcomes, ofB.outcomes, { names: [a.runId, b.runId], anyway })
  return {
    ...comparison,
    ...{ a: a.runId, b: b.runId, summaries: { a: ofA.summary, b: ofB.summary } },
    rows: firstRows(ofA, ofB, comparison.flips),
  }
}

/** From good to bad: a task with several rollouts shows the worst. */
const BY_HARM: readonly TaskState[] = ['success', 'pending', 'cancelled', 'failed', 'timeout', 'crashed']

/** A run that was read once. Its outcomes are not kept: those of 100,000 tasks take 80 MB. */
interface Scanned {
  readonly outcomes: ComparedOutcomes
  readonly rollouts: TaskNumbers
  /** The worst state of each task, by its position in `BY_HARM`. */
  readonly harm: TaskNumbers
  readonly summary: EvaluationSummary
}

async function scanned(run: PagedRun, signal: AbortSignal): Promise<Scanned> {
  const outcomes = new ComparedOutcomes()
  const results = new OutcomeResults()
  const [rollouts, harm] = [new TaskNumbers(), new TaskNumbers()]
  for await (const page of outcomePages(run, signal, { content: true }))
    for (const outcome of page) {
      results.add(outcome)
      const row = outcomes.add(outcome)
      rollouts.set(row, rollouts.get(row) + 1)
      harm.set(row, Math.max(harm.get(row), harmOf(outcome)))
    }
  return { outcomes, rollouts, harm, summary: shortSummary(results) }
}

const harmOf = ({ status }: Outcome): number => BY_HARM.indexOf(status === 'not-run' ? 'pending' : status)

/** Flips first, then the tasks whose rewards differ most. Tasks that only one run has come last. */
function firstRows(a: Scanned, b: Scanned, { toSolved, toUnsolved }: ComparedRuns['flips']): ComparedTask[] {
  const flips = new Set([...toSolved, ...toUnsolved])
  const sides = (id: string) => ({ a: sideOf(a, id), b: sideOf(b, id) })
  const ranked = [...new Set([...a.outcomes.rows.keys(), ...b.outcomes.rows.keys()])].map((id) => {
    const { a: inA, b: inB } = sides(id)
    const rank = flips.has(id) ? 0 : inA !== null && inB !== null ? 1 : 2
    return { id, rank, gap: Math.abs((inA?.reward ?? 0) - (inB?.reward ?? 0)) }
  })
  ranked.sort((x, y) => x.rank - y.rank || y.gap - x.gap)
  return ranked.slice(0, MOST_ROWS).map(({ id }) => ({ id, ...sides(id) }))
}

function sideOf({ outcomes, rollouts, harm }: Scanned, id: string): ComparedSide | null {
  const row = outcomes.rows.get(id)
  if (row === undefined) return null
  const { solved, rewards } = outcomes
  return {
    rollouts: rollouts.get(row),
    solved: solved.count(row) === 0 ? null : solved.sum(row),
    reward: rewards.count(row) === 0 ? null : rewards.mean(row),
    state: BY_HARM[harm.get(row)]!,
  }
}
