import { compareRuns } from '../../../grade/compare.ts'
import { summarizeOutcomes } from '../../../grade/summarize.ts'
import { RunFile } from '../../../store/run-file.ts'
import { columnsOf } from '../../../text/columns.ts'
import { jsonLine } from '../../../text/json.ts'
import { painterFor } from '../../../text/paint.ts'
import { renderComparison } from './render.ts'
import type { CompareArgs } from './spec.ts'

/** Compares two runs, task by task. */
export async function run({ a, b, dir, flips, confidence, anyway, json }: CompareArgs): Promise<number> {
  const [first, second] = [outcomesOf(a, dir), outcomesOf(b, dir)]
  const names: [string, string] = [first.runId, second.runId]
  const comparison = compareRuns(first.outcomes, second.outcomes, { confidence, names, anyway })
  const [of, by] = [first, second].map(({ outcomes }) => summarizeOutcomes(outcomes, { confidence })) as [
    ReturnType<typeof summarizeOutcomes>,
    ReturnType<typeof summarizeOutcomes>,
  ]
  if (json)
    process.stdout.write(`${jsonLine({ a: names[0], b: names[1], ...comparison, summaries: { a: of, b: by } })}\n`)
  else
    for (const line of renderComparison(comparison, {
      ...{ names, summaries: [of, by], flips },
      paint: painterFor(process.stdout),
      width: columnsOf(process.stdout),
    }))
      process.stdout.write(`${line}\n`)
  return 0
}

function outcomesOf(run: string, dir: string | undefined) {
  using file = RunFile.open(run, dir === undefined ? {} : { store: dir })
  return { runId: file.runId, outcomes: [...file.rollouts({ content: true })] }
}
