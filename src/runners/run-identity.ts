import { ManyworldsError } from '../errors.ts'
import type { ResolvedConfig } from '../run-config-schema.ts'
import { defaultStore, newRunId, type RunLocation, runLocation } from '../store/run-path.ts'

/** Which run this is, where its file is, and whether it is to be a new one. */
export interface RunIdentity {
  readonly runId: string
  /** Its file; undefined if nothing is stored. */
  readonly place: RunLocation | undefined
  readonly mode: 'start' | 'resume' | 'auto'
  /** False: the id was just generated, so no other run has it. */
  readonly named: boolean
}

export function identify(config: ResolvedConfig): RunIdentity {
  const { resume, retryFailed, acceptChanges, cache } = config
  const store = config.store ?? defaultStore()
  if (cache !== false && store === false)
    throw invalid('`cache` keeps answers in the store, and `store` is false (or MANYWORLDS_STORE is off)')
  if (resume === undefined) {
    if (retryFailed)
      throw invalid('`retryFailed` needs `resume`: it says which tasks of an earlier session are tried again')
    if (acceptChanges)
      throw invalid('`acceptChanges` needs `resume`: it says that settings may differ from those of an earlier session')
    const given = named(config.runId)
    const runId = given ?? newRunId()
    const place = store === false ? undefined : runLocation(store, runId)
    return { runId, place, mode: 'start', named: given !== undefined }
  }
  if (store === false) throw invalid('`resume` needs the run file, and `store` is false (or MANYWORLDS_STORE is off)')
  if (resume === 'auto') {
    const runId = named(config.runId)
    if (runId === undefined)
      throw invalid("`resume: 'auto'` needs a `runId`: the name under which the run is found again")
    return { runId, place: runLocation(store, runId), mode: 'auto', named: true }
  }
  if (config.runId !== undefined && config.runId !== resume)
    throw invalid(
      `\`resume\` names run '${resume}' and \`runId\` says '${config.runId}'; give one of them, or the same`,
    )
  return { runId: resume, place: runLocation(store, resume), mode: 'resume', named: true }
}

function named(runId: string | undefined): string | undefined {
  if (runId === 'auto' || runId === 'last')
    throw invalid(`a run cannot be called '${runId}': this word has a meaning for \`resume\` and the command line`)
  return runId
}

const invalid = (what: string) => new ManyworldsError('CONFIG_INVALID', `run configuration: ${what}`)
