import { batch, signal } from '@preact/signals'
import type { EvaluationSummary } from '../../../src/grade/summarize.ts'
import type { RunOverview } from '../../../src/store/stored-task.ts'
import type { AttemptChunk, LiveEvent, RunDetails, RunFigures, WorkerEntry } from '../../../src/view/api.ts'
import type { Source } from '../source/source.ts'
import { AttemptTable } from './attempt-table.ts'
import { Pace } from './pace.ts'
import type { Names } from './task-sort.ts'
import { TaskTable } from './task-table.ts'

/** The shortest time between two redraws while rows arrive. It grows with the number of rows. */
const REDRAW_MS = 250
const REDRAW_MS_PER_ROW = 0.01
/** An evaluation needs a scan of the run, so it is requested less often. */
const DETAILS_MS = 10_000

/** What the page of a run shows: loaded once, then kept up to date by events. */
export class RunData {
  readonly run: string
  readonly #source: Source
  readonly details = signal<RunDetails | undefined>(undefined)
  readonly overview = signal<RunOverview | undefined>(undefined)
  readonly names = signal<Names>({ agents: new Map(), workers: new Map() })
  readonly workers = signal<ReadonlyMap<number, WorkerEntry>>(new Map())
  /** For runs that are too large for an evaluation in their details. */
  readonly figures = signal<RunFigures | undefined>(undefined)
  readonly evaluation = signal<EvaluationSummary | undefined>(undefined)
  readonly error = signal<unknown>(undefined)
  readonly isLost = signal(false)
  /** Incremented when the rows of `tasks` or `attempts` change. */
  readonly tasksChanged = signal(0)
  readonly attemptsChanged = signal(0)
  readonly tasksLoaded = signal(false)
  /** Undefined: not requested. */
  readonly attemptsLoaded = signal<boolean | undefined>(undefined)
  #pace: Pace | undefined
  /** How far the clock of the server is ahead of the browser's. */
  #aheadMs = 0
  tasks = new TaskTable()
  attempts = new AttemptTable()
  #ending = new AbortController()
  #unwatch = () => {}
  #isWatching = false
  #redraw: ReturnType<typeof setTimeout> | undefined
  #changed = { tasks: false, attempts: false }
  /** Events that arrived while rows were being loaded. They are newer than those rows. */
  #early: LiveEvent[] | undefined = []
  #earlyAttempts: AttemptChunk[] | undefined
  #detailsAt = 0
  #wasLost = false

  constructor(source: Source, run: string) {
    this.#source = source
    this.run = run
  }

  open(): void {
    this.#ending = new AbortController()
    // If the user returns to a finished run, its rows are already loaded.
    const isComplete = this.tasksLoaded.value && this.overview.value?.status === 'finished'
    this.#early = isComplete ? undefined : []
    if (isComplete) this.#watch()
    else void this.#load()
  }

  #watch(after?: string): void {
    this.#isWatching = true
    this.#unwatch = this.#source.watch(
      { run: this.run, ...(after !== undefined && { after }) },
      (event) => (this.#early ? this.#early.push(event) : this.#apply(event)),
      (isLost) => this.#connection(isLost),
    )
  }

  close(): void {
    this.#unwatch()
    this.#isWatching = false
    this.#ending.abort()
    if (!this.attemptsLoaded.value) this.attemptsLoaded.value = undefined
    clearTimeout(this.#redraw)
    this.#redraw = undefined
  }

  /** Loads the attempts, unless they are already loaded. */
  loadAttempts(): void {
    if (this.attemptsLoaded.value !== undefined) return
    this.attemptsLoaded.value = false
    const early: AttemptChunk[] = (this.#earlyAttempts = [])
    void this.#guarded(async (signal) => {
      const isFirst = this.attempts.count === 0
      const attempts = isFirst ? this.attempts : new AttemptTable()
      for await (const chunk of this.#source.attempts(this.run, signal)) {
        attempts.merge(chunk)
        if (isFirst) this.#changes('attempts')
      }
      for (const chunk of early) attempts.mergeUnknown(chunk)
      this.#earlyAttempts = undefined
      this.attempts = attempts
      this.attemptsLoaded.value = true
      this.#changes('attempts')
    })
  }

  /** How fast the run is, and how long it will take. Undefined: its tasks are not loaded. */
  pace(): ReturnType<Pace['now']> | undefined {
    const overview = this.overview.value
    return overview && this.#pace?.now(overview, this.tasks.running(), Date.now() + this.#aheadMs)
  }

  /**
   * After a lost connection, events are missing, so everything is loaded again. The old rows stay until the new ones are
   * loaded.
   */
  #connection(isLost: boolean): void {
    this.isLost.value = isLost
    if (!isLost && this.#wasLost) void this.#load()
    this.#wasLost = isLost
  }

  async #load(): Promise<void> {
    this.#early ??= []
    await this.#guarded(async (signal) => {
      await this.#loadDetails()
      const isFirst = this.tasks.count === 0
      const tasks = isFirst ? this.tasks : new TaskTable()
      for await (const chunk of this.#source.tasks(this.run, signal)) {
        if (!this.#isWatching) this.#watch(chunk.cursor)
        tasks.merge(chunk)
        if (isFirst) this.#changes('tasks')
      }
      if (!this.#isWatching) this.#watch()
      this.tasks = tasks
      this.#pace = new Pace(tasks, this.details.value?.sessions.at(-1)?.startedAt ?? 0)
      this.tasksLoaded.value = true
      this.#changes('tasks')
      void this.#loadFigures().catch(() => {})
      const early = this.#early ?? []
      this.#early = undefined
      for (const event of early) this.#apply(event)
      if (!isFirst && this.attemptsLoaded.value !== undefined) {
        this.attemptsLoaded.value = undefined
        this.loadAttempts()
      }
    })
  }

  async #loadDetails(): Promise<void> {
    this.#detailsAt = Date.now()
    const details = await this.#source.run(this.run)
    batch(() => {
      this.details.value = details
      this.#aheadMs = details.now - Date.now()
      this.#takeOverview(details.overview)
      this.#takeWorkers(details.workers)
      this.#takeAgents(details.agents)
    })
    if (this.tasksLoaded.value) await this.#loadFigures()
  }

  /** For a large graded run: loads the main figures first, because the others take longer. */
  async #loadFigures(): Promise<void> {
    if (this.details.value?.evaluation || !this.tasks.has('solved')) return
    this.figures.value = await this.#source.figures(this.run)
    if (this.overview.value?.status !== 'running')
      this.evaluation.value = (await this.#source.evaluation(this.run)) ?? undefined
  }

  #apply(event: LiveEvent): void {
    if (event.kind === 'gone') {
      this.error.value = new Error(event.error.message)
      this.#unwatch()
      return
    }
    if (event.kind !== 'run') return
    batch(() => {
      const before = this.overview.value?.status
      this.#takeOverview(event.overview)
      if (event.workers) this.#takeWorkers(event.workers)
      if (event.agents) this.#takeAgents(event.agents)
      if (event.tasks) {
        this.tasks.merge(event.tasks)
        this.#changes('tasks')
      }
      if (event.attempts && this.attemptsLoaded.value !== undefined) {
        if (this.#earlyAttempts) this.#earlyAttempts.push(event.attempts)
        else this.attempts.mergeUnknown(event.attempts)
        this.#changes('attempts')
      }
      // The run was resumed while the page was not connected.
      if (before !== 'running' && event.overview.sessions !== this.details.value?.overview.sessions) void this.#load()
      else if (before !== event.overview.status || Date.now() - this.#detailsAt > DETAILS_MS)
        void this.#loadDetails().catch(() => {})
    })
  }

  #takeOverview(overview: RunOverview): void {
    this.overview.value = overview
    this.#pace?.told(overview)
  }

  #takeWorkers(entries: readonly WorkerEntry[]): void {
    if (entries.length === 0) return
    this.workers.value = new Map([...this.workers.value, ...entries.map((entry) => [entry.key, entry] as const)])
    const workers = new Map([...this.workers.value].map(([key, { id }]) => [key, id]))
    this.names.value = { ...this.names.value, workers }
  }

  #takeAgents(entries: RunDetails['agents']): void {
    if (entries.length === 0) return
    const agents = new Map([...this.names.value.agents, ...entries.map(({ key, name }) => [key, name] as const)])
    this.names.value = { ...this.names.value, agents }
  }

  #changes(what: 'tasks' | 'attempts'): void {
    this.#changed[what] = true
    this.#redraw ??= setTimeout(() => this.#tell(), REDRAW_MS + REDRAW_MS_PER_ROW * this.tasks.count)
    // The first rows are shown at once.
    if (what === 'tasks' && this.tasksChanged.value === 0) this.#tell()
    if (what === 'attempts' && this.attemptsChanged.value === 0) this.#tell()
  }

  #tell(): void {
    clearTimeout(this.#redraw)
    this.#redraw = undefined
    const { tasks, attempts } = this.#changed
    this.#changed = { tasks: false, attempts: false }
    batch(() => {
      if (tasks) this.tasksChanged.value++
      if (attempts) this.attemptsChanged.value++
    })
  }

  async #guarded(work: (signal: AbortSignal) => Promise<void>): Promise<void> {
    const { signal } = this.#ending
    try {
      await work(signal)
    } catch (error) {
      if (!signal.aborted) this.error.value = error
    }
  }
}
