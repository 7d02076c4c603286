import type { PagedRun } from '../../store/paged/paged-run.ts'
import {
  agentsOf,
  type SessionLine,
  sessionsOf,
  trainingOf,
  type WorkerLine,
  workersOf,
} from '../../store/paged/run-parts.ts'
import type { RunDetails, SessionEntry, WorkerEntry } from '../api.ts'
import { evaluationOf } from './figures.ts'
import { resumeLine } from './resume-line.ts'

/** With more tasks, an evaluation takes too long for this request. */
const MOST_EVALUATED = 5000

export async function runDetails(run: PagedRun, signal: AbortSignal): Promise<RunDetails> {
  const training = trainingOf(run)
  const overview = run.overview()
  const evaluation = run.positions().task > MOST_EVALUATED ? null : await evaluationOf(run, signal)
  const sessions = sessionsOf(run).map(sessionEntry)
  const resume = resumeLine(
    overview,
    sessions.map(({ config }) => config),
  )
  return {
    ...{ overview, now: Date.now() },
    ...(training !== undefined && { training }),
    sessions,
    ...(resume !== undefined && { resume }),
    agents: agentsOf(run),
    workers: workersOf(run).map(workerEntry),
    ...(evaluation && { evaluation }),
  }
}

function sessionEntry({ endedAt, ending, error, config, ...rest }: SessionLine): SessionEntry {
  return {
    ...rest,
    ...(endedAt !== null && { endedAt }),
    ...(ending !== null && { ending }),
    ...(error !== null && { error }),
    config: parsed(config),
  }
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch {
    return json
  }
}

export const workerEntry = ({ pid, joinedAt, leftAt, lost, ...rest }: WorkerLine): WorkerEntry => ({
  ...rest,
  pid: pid ?? undefined,
  ...(joinedAt !== null && { joinedAt }),
  ...(leftAt !== null && { leftAt }),
  ...(lost !== null && { lost }),
})
