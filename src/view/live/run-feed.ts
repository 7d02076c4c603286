import { endedPage, gradedSince, openOfTasks, openSince } from '../../store/paged/attempt-pages.ts'
import type { PagedRun, Positions } from '../../store/paged/paged-run.ts'
import { agentsOf, workersOf } from '../../store/paged/run-parts.ts'
import { taskPage, tasksByNumber } from '../../store/paged/task-pages.ts'
import type { RunOverview } from '../../store/stored-task.ts'
import type { Causes } from '../../text/failure-causes.ts'
import type { LiveEvent, WorkerEntry } from '../api.ts'
import { attemptChunk } from '../read/attempt-chunks.ts'
import { cursorText } from '../read/cursor.ts'
import { workerEntry } from '../read/run-details.ts'
import { sessionInProgress } from '../read/states.ts'
import { taskChunk } from '../read/task-chunks.ts'
import { Turns } from '../read/turns.ts'
import type { Feed, FeedEvent } from './feed.ts'

const PAGE_ROWS = 1000

/** The changes of a run for one client: new tasks and attempts, tasks that have changed, new workers and agents. */
export class RunFeed implements Feed {
  readonly #run: PagedRun
  readonly #causes: Causes
  /** The position up to which the client knows the run. */
  #at: Positions
  #overview: string | undefined
  #wasRunning = false
  /** The last state of each worker that was sent to the client. */
  readonly #workers = new Map<number, string>()
  #lastAgent = 0

  constructor(run: PagedRun, causes: Causes, from: Positions) {
    this.#run = run
    this.#causes = causes
    this.#at = from
  }

  async *next(signal: AbortSignal): AsyncGenerator<FeedEvent> {
    const run = this.#run
    const turns = new Turns()
    // Read before the rows, so that the rows are at least as new.
    const overview = run.overview()
    if (this.#wasRunning && overview.status !== 'running') yield* this.#interrupted(overview, signal)
    this.#wasRunning = overview.status === 'running'
    for (let isFirst = true; ; isFirst = false) {
      const { event, isMore } = this.#page(overview)
      const hasRows = event.tasks !== undefined || event.attempts !== undefined
      const isNew = this.#isNew(overview) || event.workers !== undefined || event.agents !== undefined
      if (hasRows || (isFirst && isNew)) yield { event, id: cursorText(this.#at) }
      if (!isMore) return
      await turns.next(signal)
    }
  }

  #isNew(overview: RunOverview): boolean {
    // These change with every commit, and need no event of their own.
    const { elapsedMs: _, bytes: __, ...told } = overview
    const text = JSON.stringify(told)
    const isNew = text !== this.#overview
    this.#overview = text
    return isNew
  }

  #page(overview: RunOverview): { readonly event: RunEvent; readonly isMore: boolean } {
    const run = this.#run
    const at = this.#at
    const now = run.positions()
    const ended = endedPage(run, at.seq, PAGE_ROWS)
    const fresh = taskPage(run, at.task, PAGE_ROWS)
    const open = openSince(run, at.start)
    const changed = new Set([...ended, ...open].map(({ task }) => task))
    if (now.grade > at.grade) for (const task of gradedSince(run, at.grade)) changed.add(task)
    for (const [task] of fresh) changed.delete(task)
    const lines = [...fresh, ...tasksByNumber(run, changed)]
    this.#at = {
      seq: ended.at(-1)?.seq ?? at.seq,
      task: fresh.at(-1)?.[0] ?? at.task,
      grade: Math.max(at.grade, now.grade),
      start: Math.max(at.start, now.start),
    }
    const session = sessionInProgress(overview)
    const workers = this.#newWorkers()
    const agents = agentsOf(run, this.#lastAgent)
    this.#lastAgent = agents.at(-1)?.key ?? this.#lastAgent
    const event: RunEvent = {
      ...{ kind: 'run', overview },
      ...(lines.length > 0 && { tasks: taskChunk(run, lines, { causes: this.#causes, session, at: this.#at }) }),
      ...(ended.length + open.length > 0 && { attempts: attemptChunk(ended, open, session) }),
      ...(workers.length > 0 && { workers }),
      ...(agents.length > 0 && { agents }),
    }
    return { event, isMore: ended.length === PAGE_ROWS || fresh.length === PAGE_ROWS }
  }

  #newWorkers(): WorkerEntry[] {
    return workersOf(this.#run)
      .map(workerEntry)
      .filter((worker) => {
        const text = JSON.stringify(worker)
        if (this.#workers.get(worker.key) === text) return false
        this.#workers.set(worker.key, text)
        return true
      })
  }

  /** Sends tasks that are no longer running, because the run has ended or its driver was killed. */
  async *#interrupted(overview: RunOverview, signal: AbortSignal): AsyncGenerator<FeedEvent> {
    const run = this.#run
    const turns = new Turns()
    const { task: last } = run.positions()
    for (let after = 0; after < last; after += PAGE_ROWS) {
      const open = openOfTasks(run, after, Math.min(last, after + PAGE_ROWS))
      if (open.length > 0) {
        const lines = tasksByNumber(run, new Set(open.map(({ task }) => task)))
        const tasks = taskChunk(run, lines, { causes: this.#causes, session: undefined, at: this.#at })
        yield { event: { kind: 'run', overview, tasks, attempts: attemptChunk([], open, undefined) } }
      }
      await turns.next(signal)
    }
  }
}

type RunEvent = Extract<LiveEvent, { kind: 'run' }>
