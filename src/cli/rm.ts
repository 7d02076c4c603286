import { ManyworldsError } from '../errors.ts'
import { cacheSize, clearCache } from '../store/clear-cache.ts'
import { findRun, listRuns, runFolder } from '../store/find-run.ts'
import { overviewsOf, type RunSummary } from '../store/overview.ts'
import { removeRuns } from '../store/remove-run.ts'
import { sharedStore } from '../store/run-path.ts'
import { counted, bytes as size } from '../text/quantities.ts'
import { say } from '../text/say.ts'
import { oneLine } from '../text/visible.ts'
import { confirm, INTERRUPTED } from './confirm.ts'
import type { RmArgs } from './specs/rm.ts'
import { UsageError } from './usage-error.ts'

/** Removes recorded runs, or cached answers, after asking. */
export async function run(args: RmArgs): Promise<number> {
  const { runs, dir, olderThan, dryRun, yes, cache } = args
  if (cache) {
    if (runs.length > 0) throw new UsageError('name runs, or give --cache, not both')
    return await removeCache(args)
  }
  if (olderThan !== undefined && runs.length > 0) throw new UsageError('name runs, or give --older-than, not both')
  const found =
    olderThan === undefined
      ? runs.map((name) => findRun(name, runFolder(dir)))
      : [...overviewsOf(listRuns(runFolder(dir)))].filter(isOlderThan(olderThan)).map((run) => run.found)
  const wanted = [...new Map(found.map((run) => [`${run.path}\0${run.run}`, run])).values()]
  const summaries = [...overviewsOf(wanted)]
  for (const { problem } of summaries) refuseForeign(problem)
  const going = summaries.filter(({ overview }) => overview?.status === 'running').map((run) => run.found)
  for (const { runId } of going) say(`run ${runId} is going on, and stays`)
  const free = wanted.filter((run) => !going.includes(run))
  const failed = runs.length > 0 && going.length > 0 ? 1 : 0
  if (free.length === 0) {
    process.stderr.write('nothing to remove\n')
    return failed
  }
  if (dryRun) {
    for (const { runId } of free) process.stdout.write(`${oneLine(runId)}\n`)
    return failed
  }
  if (!yes) {
    const names = free.map(({ runId }) => runId)
    const answer = await confirm(names, `Remove ${counted(free.length, 'run')}?`)
    if (answer !== 'yes') return answer === 'interrupted' ? INTERRUPTED : 1
  }
  removeRuns(free)
  process.stderr.write(`removed ${counted(free.length, 'run')}\n`)
  return failed
}

/** A damaged run file may go; a database that is somebody else's may not. */
function refuseForeign(problem: Error | undefined): void {
  if (ManyworldsError.is(problem) && problem.message.includes('some other SQLite file')) throw problem
}

async function removeCache({ dir, olderThan = 0, dryRun, yes }: RmArgs): Promise<number> {
  const path = sharedStore(runFolder(dir))
  const before = olderThan === 0 ? Number.MAX_SAFE_INTEGER : Date.now() - olderThan
  const { replies, bytes } = cacheSize(path, before)
  const what = `${counted(replies, 'cached answer')} (${size(bytes)})`
  if (replies === 0) process.stderr.write('nothing to remove\n')
  else if (dryRun) process.stdout.write(`${what}\n`)
  else {
    const answer = yes ? 'yes' : await confirm([], `Remove ${what} from ${path}?`)
    if (answer !== 'yes') return answer === 'interrupted' ? INTERRUPTED : 1
    clearCache(path, before)
    process.stderr.write(`removed ${what}\n`)
  }
  return 0
}

/** What cannot be read was not asked for: a person must name it. */
function isOlderThan(ms: number): (run: RunSummary) => boolean {
  const before = Date.now() - ms
  return ({ overview }) => overview !== undefined && overview.startedAt < before
}
