import { rmSync } from 'node:fs'
import { createInterface } from 'node:readline/promises'
import { ManyworldsError } from '../errors.ts'
import { findRun, runFolder } from '../store/find-run.ts'
import { isLocked, lockPath } from '../store/lock.ts'
import { RunFile } from '../store/run-file.ts'
import { runIdOfPath } from '../store/run-path.ts'
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
      : RunFile.list(dir === undefined ? {} : { store: dir }).filter((path) => isOlder(path, Date.now() - olderThan))
  const paths = [...new Set(found)]
  for (const path of paths) refuseOthersFiles(path)
  const going = paths.filter((path) => isLocked(path))
  for (const path of going) say(`run ${nameOf(path)} is going on, and stays`)
  const free = paths.filter((path) => !going.includes(path))
  const failed = runs.length > 0 && going.length > 0 ? 1 : 0
  if (free.length === 0) {
    process.stderr.write('nothing to remove\n')
    return failed
  }
  if (dryRun) {
    for (const path of free) process.stdout.write(`${nameOf(path)}\n`)
    return failed
  }
  if (!yes) {
    const answer = await ask(free)
    if (answer !== 'yes') return answer === 'interrupted' ? INTERRUPTED : 1
  }
  for (const path of free) remove(path)
  process.stderr.write(`removed ${counted(free.length, 'run')}\n`)
  return failed
}

const nameOf = (path: string) => oneLine(runIdOfPath(path))

/** A damaged run file may go; a database that is somebody else's may not. */
function refuseOthersFiles(path: string): void {
  try {
    RunFile.open(path).close()
  } catch (error) {
    if (ManyworldsError.is(error) && error.message.includes('some other SQLite file')) throw error
  }
}

async function ask(paths: readonly string[]): Promise<'yes' | 'no' | 'interrupted'> {
  if (!process.stdin.isTTY) throw new UsageError('nobody is there to be asked: give --yes to remove without asking')
  for (const path of paths) process.stderr.write(`  ${nameOf(path)}\n`)
  const asking = createInterface({ input: process.stdin, output: process.stderr })
  try {
    const answer = await asking.question(`Remove ${counted(paths.length, 'run')}? [y/N] `)
    return /^y(es)?$/i.test(answer.trim()) ? 'yes' : 'no'
  } catch (error) {
    // Ctrl-C, or the end of the input.
    process.stderr.write('\n')
    return (error as Error).message.includes('Ctrl+C') ? 'interrupted' : 'no'
  } finally {
    asking.close()
  }
}

function isOlder(path: string, than: number): boolean {
  try {
    using run = RunFile.open(path)
    return run.overview().startedAt < than
  } catch {
    // What cannot be read was not asked for: a person must name it.
    return false
  }
}

function remove(path: string): void {
  for (const file of [
    path,
    `${path}-wal`,
    `${path}-shm`,
    `${path}-journal`,
    lockPath(path),
    `${lockPath(path)}-journal`,
  ])
    rmSync(file, { force: true })
}
