import { ComparedOutcomes, compareOutcomes } from '../../grade/compare.ts'
import { type Outcome, resultOf } from '../../grade/outcome.ts'
import { OutcomeResults } from '../../grade/summarize.ts'
import type { PagedRun } from '../../store/paged/paged-run.ts'
import type { ComparedRuns, ComparedSide, ComparedTask, TaskState } from '../api.ts'
import { outcomePages, shortSummary } from './figures.ts'

/** The most tasks that a comparison lists: flips first, then those that differ most. */
const MOST_ROWS = 20_000

/** Compares two runs task by task. */
export async function comparedRuns(a: PagedRun, b: PagedRun, signal: AbortSignal): Promise<ComparedRuns> {
  const [ofA, ofB] = [await scanned(a, signal), await scanned(b, signal)]
  const comparison = compareOutcomes(ofA.outcomes, ofB.outcomes, { names: [a.runId, b.runId] })
  const flips = new Set([...comparison.flips.toSolved, ...comparison.flips.toUnsolved])
  const rows = [...new Set([...ofA.sides.keys(), ...ofB.sides.keys()])].map(
    (id): ComparedTask => ({ id, a: sideOf(ofA.sides.get(id)), b: sideOf(ofB.sides.get(id)) }),
  )
  return {
    ...comparison,
    ...{ a: a.runId, b: b.runId, summaries: { a: ofA.summary, b: ofB.summary } },
    rows: sorted(rows, flips).slice(0, MOST_ROWS),
  }
}

/** Reads a run once. Its outcomes are not kept: those of 100,000 tasks take 80 MB. */
async function scanned(run: PagedRun, signal: AbortSignal) {
  const outcomes = new ComparedOutcomes()
  const results = new OutcomeResults()
  const sides = new Map<string, Side>()
  for await (const page of outcomePages(run, signal))
    for (const outcome of page) {
      outcomes.add(outcome)
      results.add(outcome)
      let side = sides.get(outcome.taskId)
      if (!side)
        sides.set(outcome.taskId, (side = { rollouts: 0, results: 0, solved: 0, rewards: 0, reward: 0, harm: 0 }))
      addTo(side, outcome)
    }
  return { outcomes, sides, summary: shortSummary(results) }
}

/** Tasks that only one run has come last. */
function sorted(rows: readonly ComparedTask[], flips: ReadonlySet<string>): ComparedTask[] {
  const rank = ({ id, a, b }: ComparedTask) => (flips.has(id) ? 0 : a !== null && b !== null ? 1 : 2)
  const gap = ({ a, b }: ComparedTask) => Math.abs((a?.reward ?? 0) - (b?.reward ?? 0))
  return rows
    .map((row) => ({ row, rank: rank(row), gap: gap(row) }))
    .sort((x, y) => x.rank - y.rank || y.gap - x.gap)
    .map(({ row }) => row)
}

/** From good to bad: a task with several rollouts shows the worst. */
const BY_HARM: readonly TaskState[] = ['success', 'pending', 'cancelled', 'failed', 'timeout', 'crashed']

/** Sums over the rollouts of a task. */
interface Side {
  rollouts: number
  /** How many have a result, and how many of them are solved. */
  results: number
  solved: number
  /** How many have a reward, and its sum. */
  rewards: number
  reward: number
  /** The worst state, by its position in `BY_HARM`. */
  harm: number
}

function addTo(side: Side, outcome: Outcome): void {
  const { solved, reward } = resultOf(outcome)
  side.rollouts++
  if (solved !== null) side.results++
  if (solved) side.solved++
  if (reward !== null) {
    side.rewards++
    side.reward += reward
  }
  side.harm = Math.max(side.harm, BY_HARM.indexOf(outcome.status === 'not-run' ? 'pending' : outcome.status))
}

function sideOf(side: Side | undefined): ComparedSide | null {
  if (side === undefined) return null
  const { rollouts, results, solved, rewards, reward, harm } = side
  return {
    rollouts,
    solved: results === 0 ? null : solved,
    reward: rewards === 0 ? null : reward / rewards,
    state: BY_HARM[harm]!,
  }
}
