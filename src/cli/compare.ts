import { compareRuns } from '../grade/compare.ts'
import { summarizeOutcomes } from '../grade/summarize.ts'
import { RunFile } from '../store/run-file.ts'
import { jsonLine } from '../text/json.ts'
import { painter, wantsColour } from '../text/paint.ts'
import { renderComparison } from './render-comparison.ts'
import type { CompareArgs } from './specs/compare.ts'

const WIDTH_OF_A_PIPE = 120

/** Compares two runs, task by task. */
export async function run({ a, b, dir, flips, confidence, json }: CompareArgs): Promise<number> {
  const [first, second] = [outcomesOf(a, dir), outcomesOf(b, dir)]
  const names: [string, string] = [first.runId, second.runId]
  const comparison = compareRuns(first.outcomes, second.outcomes, { confidence, names })
  const [of, by] = [first, second].map(({ outcomes }) => summarizeOutcomes(outcomes, { confidence })) as [
    ReturnType<typeof summarizeOutcomes>,
    ReturnType<typeof summarizeOutcomes>,
  ]
  if (json)
    process.stdout.write(`${jsonLine({ a: names[0], b: names[1], ...comparison, summaries: { a: of, b: by } })}\n`)
  else
    for (const line of renderComparison(comparison, {
      ...{ names, summaries: [of, by], flips },
      paint: painter(wantsColour(process.stdout)),
      width: process.stdout.columns ?? WIDTH_OF_A_PIPE,
    }))
      process.stdout.write(`${line}\n`)
  return 0
}

function outcomesOf(run: string, dir: string | undefined) {
  using file = RunFile.open(run, dir === undefined ? {} : { store: dir })
  return { runId: file.runId, outcomes: [...file.rollouts()] }
}
