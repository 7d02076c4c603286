import { statSync } from 'node:fs'
import { listRuns, ownRuns, runFolder } from '../../../store/find-run.ts'
import { overviewsOf, type RunSummary } from '../../../store/overview.ts'
import { sharedStore } from '../../../store/run-path.ts'
import { columnsOf } from '../../../text/columns.ts'
import { escapeControls } from '../../../text/escape-controls.ts'
import { jsonLine } from '../../../text/json.ts'
import { wantsColor } from '../../../text/paint.ts'
import { bytes, count } from '../../../text/quantities.ts'
import { type RunRow, renderRuns } from '../../render/runs.ts'
import type { RunsArgs } from './spec.ts'

/** Lists recorded runs. */
export async function run({ dir, json, limit, all }: RunsArgs): Promise<number> {
  const found = listRuns(runFolder(dir)).reverse()
  const listed = all ? found : ownRuns(found)
  const runs = listed.slice(0, limit ?? Number.POSITIVE_INFINITY)
  const rows = Array.from(overviewsOf(runs), rowOf)
  if (json) for (const row of rows) process.stdout.write(`${jsonLine(row)}\n`)
  else if (rows.length === 0) process.stderr.write(`no runs in ${escapeControls(runFolder(dir))}\n`)
  else {
    process.stdout.write(`${renderRuns(rows, layout())}\n`)
    sayStoreSize(sharedStore(runFolder(dir)))
  }
  if (!json) sayLeftOut(found.length - listed.length)
  return rows.some(({ status }) => status === 'unreadable') ? 1 : 0
}

/** Runs of trainings are left out, because a training has hundreds of them, which would hide all others. */
function sayLeftOut(runs: number): void {
  if (runs === 0) return
  const what = runs === 1 ? 'a run of a training is' : `${count(runs)} runs of trainings are`
  process.stderr.write(`${what} left out: --all lists all, "manyworlds trainings" the trainings\n`)
}

/** A file that cannot be read is listed too: it may be the one the user is looking for. */
function rowOf({ found, overview, problem }: RunSummary): RunRow {
  if (overview) return overview
  const { path, runId } = found
  const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0
  return { runId, file: path, status: 'unreadable', problem: problem.message, bytes: size }
}

/** Runs of a store share its file, so the size of a single run is unknown. */
function sayStoreSize(path: string): void {
  const size = statSync(path, { throwIfNoEntry: false })?.size
  if (size === undefined) return
  const log = statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0
  process.stderr.write(`${escapeControls(path)}: ${bytes(size + log)}\n`)
}

const layout = () => ({
  color: wantsColor(process.stdout),
  width: columnsOf(process.stdout),
  now: Date.now(),
})
