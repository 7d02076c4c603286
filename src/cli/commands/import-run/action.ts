import { copyRun } from '../../../store/copy-run.ts'
import { findRun, runFolder } from '../../../store/find-run.ts'
import { RunFile } from '../../../store/run-file.ts'
import { isRunFile, sharedStore } from '../../../store/run-path.ts'
import { UsageError } from '../../frame/usage-error.ts'
import type { ImportRunArgs } from './spec.ts'

/** Copies a run into the store of a folder. */
export async function run({ file, dir }: ImportRunArgs): Promise<number> {
  if (!isRunFile(file))
    throw new UsageError(`FILE must be a run file, whose name ends with .sqlite or .db; it is '${file}'`)
  const found = findRun(file, runFolder(dir))
  using opened = RunFile.at(found)
  const store = sharedStore(runFolder(dir))
  copyRun(found, store)
  process.stderr.write(`run ${opened.runId} was copied to ${store}\n`)
  return 0
}
