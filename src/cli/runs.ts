import { statSync } from 'node:fs'
import { listRuns, ownRuns, runFolder } from '../store/find-run.ts'
import { overviewsOf, type RunSummary } from '../store/overview.ts'
import { sharedStore } from '../store/run-path.ts'
import { jsonLine } from '../text/json.ts'
import { wantsColour } from '../text/paint.ts'
import { bytes, count } from '../text/quantities.ts'
import { visible } from '../text/visible.ts'
import { type RunRow, renderRuns } from './render-runs.ts'
import type { RunsArgs } from './specs/runs.ts'

const WIDTH_OF_A_PIPE = 120

/** Lists recorded runs. */
export async function run({ dir, json, limit, all }: RunsArgs): Promise<number> {
  const found = listRuns(runFolder(dir)).reverse()
  const listed = all ? found : ownRuns(found)
  const runs = listed.slice(0, limit ?? Number.POSITIVE_INFINITY)
  const rows = Array.from(overviewsOf(runs), rowOf)
  if (json) for (const row of rows) process.stdout.write(`${jsonLine(row)}\n`)
  else if (rows.length === 0) process.stderr.write(`no runs in ${visible(runFolder(dir))}\n`)
  else {
    process.stdout.write(`${renderRuns(rows, layout())}\n`)
    sayStoreSize(sharedStore(runFolder(dir)))
  }
  if (!json) sayLeftOut(found.length - listed.length)
  return rows.some(({ status }) => status === 'unreadable') ? 1 : 0
}

/** A training has hundreds of runs, which would hide all others. */
function sayLeftOut(runs: number): void {
  if (runs === 0) return
  const what = runs === 1 ? 'a run of a training is' : `${count(runs)} runs of trainings are`
  process.stderr.write(`${what} left out: --all lists all, "manyworlds trainings" the trainings\n`)
}

/** A file that cannot be read is listed too: it is the one that somebody looks for. */
function rowOf({ found, overview, problem }: RunSummary): RunRow {
  if (overview) return overview
  const { path, runId } = found
  const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0
  return { runId, file: path, status: 'unreadable', problem: problem.message, bytes: size }
}

/** Runs of a store share its file: what one of them takes cannot be told. */
function sayStoreSize(path: string): void {
  const size = statSync(path, { throwIfNoEntry: false })?.size
  if (size === undefined) return
  const log = statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0
  process.stderr.write(`${visible(path)}: ${bytes(size + log)}\n`)
}

const layout = () => ({
  colour: wantsColour(process.stdout),
  width: process.stdout.columns ?? WIDTH_OF_A_PIPE,
  now: Date.now(),
})
