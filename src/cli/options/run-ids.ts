import { defaultStore } from '../../store/run-path.ts'
import { oneLine } from '../../text/escape-controls.ts'

/** The ids of the runs that were recorded here, for the tab key; without those of trainings. */
export const listRunIds = (): Promise<string[]> =>
  idsIn(async (store) => {
    const { listRuns, ownRuns } = await import('../../store/find-run.ts')
    return ownRuns(listRuns(store)).map(({ runId }) => runId)
  })

/** The ids of the trainings. */
export const listTrainingIds = (): Promise<string[]> =>
  idsIn(async (store) => {
    const { listFound } = await import('../../store/trainings/find-training.ts')
    return listFound(store).map(({ id }) => id)
  })

/** Loaded by `list`: `doctor` runs on a Node that is too old for the store. */
async function idsIn(list: (store: string) => Promise<string[]>): Promise<string[]> {
  const store = defaultStore()
  if (store === false) return []
  try {
    return (await list(store)).filter((id) => oneLine(id) === id).reverse()
  } catch {
    return []
  }
}
