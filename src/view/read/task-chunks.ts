import type { PagedRun, Positions } from '../../store/paged/paged-run.ts'
import { isLarge } from '../../store/paged/search-pages.ts'
import { type TaskLine, taskPage } from '../../store/paged/task-pages.ts'
import { isFields } from '../../store/stored-shapes.ts'
import type { Causes } from '../../text/failure-causes.ts'
import type { TaskChunk } from '../api.ts'
import { cursorText } from './cursor.ts'
import { sessionInProgress, stateNumber } from './states.ts'
import { Turns } from './turns.ts'

/** Tasks per chunk. */
export const CHUNK_ROWS = 2000
/** Tasks that are read at once. Other requests get their turn in between. */
const PAGE_ROWS = 500

/** Streams all tasks of a run. */
export async function* taskChunks(run: PagedRun, causes: Causes, signal: AbortSignal): AsyncGenerator<TaskChunk> {
  const at = run.positions()
  const session = sessionInProgress(run.overview())
  const named = new Set<number>()
  const turns = new Turns()
  let lines: TaskLine[] = []
  for (let after = 0; ; ) {
    const page = taskPage(run, after, PAGE_ROWS)
    lines.push(...page)
    const isLast = page.length < PAGE_ROWS
    if (lines.length >= CHUNK_ROWS || isLast) {
      yield taskChunk(run, lines, { causes, session, at, named })
      lines = []
    }
    if (isLast) return
    after = page.at(-1)![0]
    await turns.next(signal)
  }
}

export interface ChunkContext {
  readonly causes: Causes
  /** The session in progress; undefined if there is none, so that no task is running. */
  readonly session: number | undefined
  readonly at: Positions
  /** The causes that the client knows. */
  readonly named?: Set<number>
}

type Growing = {
  -readonly [Column in keyof TaskChunk]: TaskChunk[Column] extends readonly (infer Cell)[] ? Cell[] : string
}

export function taskChunk(run: PagedRun, lines: readonly TaskLine[], context: ChunkContext): TaskChunk {
  const { causes, session, at, named = new Set() } = context
  const chunk: Growing = {
    ...{
      task: [],
      id: [],
      parent: [],
      agent: [],
      state: [],
      attempts: [],
      cause: [],
      endedAt: [],
      runMs: [],
      queuedMs: [],
    },
    ...{ tokensIn: [], tokensOut: [], costUsd: [], reward: [], solved: [], worker: [], version: [], group: [] },
    ...{ rollout: [], causes: [], cursor: cursorText(at) },
  }
  for (const line of lines) {
    const [task, id, parent, agent, group, rollout, status, attempt, code, endedAt, runUs, queuedUs, ...rest] = line
    const [tokensIn, tokensOut, costUsd, reward, solved, worker, version, error, openIn] = rest
    const hasFailed = status !== null && status !== 'success'
    const cause = hasFailed ? causes.keyOf(code ?? status, messageOf(run, error)) : null
    if (cause !== null && !named.has(cause)) {
      named.add(cause)
      chunk.causes.push(causes.get(cause))
    }
    chunk.task.push(task)
    chunk.id.push(id)
    chunk.parent.push(parent)
    chunk.agent.push(agent)
    chunk.state.push(stateNumber(status, openIn > 0 && openIn === session))
    chunk.attempts.push(attempt)
    chunk.cause.push(cause)
    chunk.endedAt.push(endedAt)
    // The run time of a task that died with its worker is unknown, and is stored as 0.
    chunk.runMs.push(runUs === null || (hasFailed && runUs === 0) ? null : runUs / 1000)
    chunk.queuedMs.push(queuedUs === null ? null : queuedUs / 1000)
    chunk.tokensIn.push(tokensIn)
    chunk.tokensOut.push(tokensOut)
    chunk.costUsd.push(costUsd)
    chunk.reward.push(reward)
    chunk.solved.push(solved)
    chunk.worker.push(worker)
    chunk.version.push(version)
    chunk.group.push(group)
    chunk.rollout.push(rollout)
  }
  return chunk
}

function messageOf(run: PagedRun, stored: unknown): string {
  if (stored === null || isLarge(run, stored)) return ''
  const error = run.value(stored)
  return isFields(error) && typeof error.message === 'string' ? error.message : ''
}
