import { readdir } from 'node:fs/promises'
import { defaultStore, isRunFile, runIdOfPath } from '../store/run-path.ts'
import { oneLine } from '../text/visible.ts'

/** The ids of the runs that were recorded here, for the tab key. */
export async function listRunIds(): Promise<string[]> {
  const store = defaultStore()
  const names = store === false ? [] : await readdir(store).catch(() => [])
  return names
    .filter(isRunFile)
    .map(runIdOfPath)
    .filter((id) => oneLine(id) === id)
    .sort()
    .reverse()
}
