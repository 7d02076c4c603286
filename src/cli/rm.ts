import { rmSync } from 'node:fs'
import { createInterface } from 'node:readline/promises'
import { findRun, runFolder } from '../store/find-run.ts'
import { isLocked, lockPath } from '../store/lock.ts'
import { RunFile } from '../store/run-file.ts'
import { runIdOfPath } from '../store/run-path.ts'
import { counted } from '../text/quantities.ts'
import type { RmArgs } from './specs/rm.ts'
import { UsageError } from './usage-error.ts'

/** Removes recorded runs, after asking. */
export async function run({ runs, dir, olderThan, dryRun, yes }: RmArgs): Promise<number> {
  const named = runs.map((name) => findRun(name, runFolder(dir)))
  const old =
    olderThan === undefined
      ? []
      : RunFile.list(dir === undefined ? {} : { store: dir }).filter((path) => isOlder(path, Date.now() - olderThan))
  const paths = [...new Set([...named, ...old])]
  const going = paths.filter((path) => isLocked(path))
  for (const path of going) process.stderr.write(`manyworlds: run ${runIdOfPath(path)} is going on, and stays\n`)
  const free = paths.filter((path) => !going.includes(path))
  const failed = going.some((path) => named.includes(path)) ? 1 : 0
  if (free.length === 0) {
    process.stderr.write('nothing to remove\n')
    return failed
  }
  if (dryRun) {
    for (const path of free) process.stdout.write(`${runIdOfPath(path)}\n`)
    return failed
  }
  if (!yes && !(await agreed(free))) return 1
  for (const path of free) remove(path)
  process.stderr.write(`removed ${counted(free.length, 'run')}\n`)
  return failed
}

async function agreed(paths: readonly string[]): Promise<boolean> {
  if (!process.stdin.isTTY) throw new UsageError('nobody is there to be asked: give --yes to remove without asking')
  for (const path of paths) process.stderr.write(`  ${runIdOfPath(path)}\n`)
  const asking = createInterface({ input: process.stdin, output: process.stderr })
  const answer = await asking.question(`Remove ${counted(paths.length, 'run')}? [y/N] `)
  asking.close()
  return /^y(es)?$/i.test(answer.trim())
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
