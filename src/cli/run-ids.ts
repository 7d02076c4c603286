import { defaultStore } from '../store/run-path.ts'
import { oneLine } from '../text/visible.ts'

/** The ids of the runs that were recorded here, for the tab key. */
export async function listRunIds(): Promise<string[]> {
  const store = defaultStore()
  if (store === false) return []
  try {
    // Loaded here: `doctor` runs on a Node that is too old for it.
    const { listRuns } = await import('../store/find-run.ts')
    return listRuns(store)
      .map(({ runId }) => runId)
      .filter((id) => oneLine(id) === id)
      .reverse()
  } catch {
    return []
  }
}
