import { defaultStore } from '../../store/run-path.ts'
import { oneLine } from '../../text/escape-controls.ts'

/** The ids of recorded runs, for shell completion. Runs of trainings are left out. */
export const listRunIds = (): Promise<string[]> =>
  idsIn(async (store) => {
    const { listRuns, ownRuns } = await import('../../store/find-run.ts')
    return ownRuns(listRuns(store)).map(({ runId }) => runId)
  })

/** The ids of recorded trainings, for shell completion. */
export const listTrainingIds = (): Promise<string[]> =>
  idsIn(async (store) => {
    const { listFound } = await import('../../store/trainings/find-training.ts')
    return listFound(store).map(({ id }) => id)
  })

/** `list` imports the store when it is called, because `doctor` must run on a Node that is too old for it. */
async function idsIn(list: (store: string) => Promise<string[]>): Promise<string[]> {
  const store = defaultStore()
  if (store === false) return []
  try {
    return (await list(store)).filter((id) => oneLine(id) === id).reverse()
  } catch {
    return []
  }
}
