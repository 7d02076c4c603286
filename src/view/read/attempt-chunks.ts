import { type EndedAttempt, endedPage, type OpenAttempt, openOfTasks } from '../../store/paged/attempt-pages.ts'
import type { PagedRun } from '../../store/paged/paged-run.ts'
import { type AttemptChunk, ROLES } from '../api.ts'
import { sessionInProgress, stateNumber } from './states.ts'
import { Turns } from './turns.ts'

const CHUNK_ROWS = 5000
const UNFINISHED = ROLES.indexOf('unfinished')

/** Streams all attempts of a run: those that have ended in the order of their ends, then the others. */
export async function* attemptChunks(run: PagedRun, signal: AbortSignal): AsyncGenerator<AttemptChunk> {
  const session = sessionInProgress(run.overview())
  const turns = new Turns()
  const { task: last } = run.positions()
  for (let after = 0; ; ) {
    const ended = endedPage(run, after, CHUNK_ROWS)
    if (ended.length > 0) yield attemptChunk(ended, [], session)
    if (ended.length < CHUNK_ROWS) break
    after = ended.at(-1)!.seq
    await turns.next(signal)
  }
  for (let after = 0; after < last; after += CHUNK_ROWS) {
    const open = openOfTasks(run, after, Math.min(last, after + CHUNK_ROWS))
    if (open.length > 0) yield attemptChunk([], open, session)
    await turns.next(signal)
  }
}

/** `session`: the number of the session that is in progress; attempts of earlier ones were interrupted. */
export function attemptChunk(
  ended: readonly EndedAttempt[],
  open: readonly OpenAttempt[],
  session: number | undefined,
): AttemptChunk {
  const both = [...ended, ...open]
  return {
    task: both.map(({ task }) => task),
    worker: both.map(({ worker }) => worker),
    attempt: both.map(({ attempt }) => attempt),
    role: [...ended.map(({ role }) => role), ...open.map(() => UNFINISHED)],
    state: [
      ...ended.map(({ status }) => stateNumber(status, false)),
      ...open.map(({ epoch }) => stateNumber(null, epoch === session)),
    ],
    startedAt: [...ended.map(({ endedAt, runUs }) => endedAt - Math.round(runUs / 1000)), ...open.map(({ at }) => at)],
    endedAt: [...ended.map(({ endedAt }) => endedAt), ...open.map(() => null)],
  }
}
