import { resolve } from 'node:path'
import { copyRun } from '../../../store/copy-run.ts'
import { findRun, runFolder } from '../../../store/find-run.ts'
import { isRunFile, isSharedStore } from '../../../store/run-path.ts'
import { UsageError } from '../../frame/usage-error.ts'
import type { ExportRunArgs } from './spec.ts'

/** Copies a run out of its store. */
export async function run({ run: name, file, dir }: ExportRunArgs): Promise<number> {
  if (!isRunFile(file) || isSharedStore(file))
    throw new UsageError(`FILE must end with .sqlite or .db and must not be named store.sqlite; it is '${file}'`)
  const found = findRun(name, runFolder(dir))
  copyRun(found, resolve(file))
  process.stderr.write(`run ${found.runId} was copied to ${file}\n`)
  return 0
}
