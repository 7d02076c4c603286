import { createInterface } from 'node:readline/promises'
import { ManyworldsError } from '../errors.ts'
import { type FoundRun, findRun, listRuns, runFolder } from '../store/find-run.ts'
import { overviewsOf, type RunSummary } from '../store/overview.ts'
import { removeRuns } from '../store/remove-run.ts'
import { counted } from '../text/quantities.ts'
import { say } from '../text/say.ts'
import { oneLine } from '../text/visible.ts'
import type { RmArgs } from './specs/rm.ts'
import { UsageError } from './usage-error.ts'

const INTERRUPTED = 130

/** Removes recorded runs, after asking. */
export async function run({ runs, dir, olderThan, dryRun, yes }: RmArgs): Promise<number> {
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
    const answer = await ask(free)
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

async function ask(runs: readonly FoundRun[]): Promise<'yes' | 'no' | 'interrupted'> {
  if (!process.stdin.isTTY) throw new UsageError('nobody is there to be asked: give --yes to remove without asking')
  for (const { runId } of runs) process.stderr.write(`  ${oneLine(runId)}\n`)
  const asking = createInterface({ input: process.stdin, output: process.stderr })
  try {
    const answer = await asking.question(`Remove ${counted(runs.length, 'run')}? [y/N] `)
    return /^y(es)?$/i.test(answer.trim()) ? 'yes' : 'no'
  } catch (error) {
    // Ctrl-C, or the end of the input.
    process.stderr.write('\n')
    return (error as Error).message.includes('Ctrl+C') ? 'interrupted' : 'no'
  } finally {
    asking.close()
  }
}

/** What cannot be read was not asked for: a person must name it. */
function isOlderThan(ms: number): (run: RunSummary) => boolean {
  const before = Date.now() - ms
  return ({ overview }) => overview !== undefined && overview.startedAt < before
}
