import { packTask } from '../task-checks.ts'
import type { AgentLoading } from './agent-loading.ts'
import type { AgentTable } from './agents.ts'
import type { Fleet } from './fleet.ts'
import type { Profiles } from './profiles.ts'
import type { Responses } from './responses.ts'
import type { Run } from './run.ts'
import type { ReadyTask } from './source.ts'
import { type EntryOptions, TaskEntry } from './task-entry.ts'

interface Parts {
  readonly agents: AgentTable
  readonly loading: AgentLoading
  readonly profiles: Profiles
  readonly responses: Responses
  readonly fleet: Fleet
  /** The run's source has ended, and perhaps the run with it. */
  finished(run: Run): void
}

/** So many tasks of a run may wait for labels or agents, however few the workers could take: others behind them can run. */
const MIN_ASIDE = 64

/** Reads tasks from the runs' sources, no further ahead than workers can take, and makes entries of them. */
export class Intake {
  readonly runs: Run[] = []
  readonly #parts: Parts
  #turn = 0

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** The next task that may run; runs take turns. */
  next(): TaskEntry | undefined {
    for (let tried = 0; tried < this.runs.length; ) {
      const run = this.runs[this.#turn++ % this.runs.length]!
      for (;;) {
        const entry = run.urgent.shift() ?? run.ready.shift() ?? this.#pull(run)
        if (entry === undefined) break
        if (!entry.settled) return entry
      }
      // If this run has just ended, it left the list and the next run moved to its index: don't skip that one.
      if (run.over) this.#turn--
      else tried++
    }
    return undefined
  }

  /** The next sub-task that may run, before everything else. */
  nextSubTask(suits: (entry: TaskEntry) => boolean): TaskEntry | undefined {
    for (const run of this.runs) {
      const waiting = run.urgent.drain().filter(({ settled }) => !settled)
      const at = waiting.findIndex((entry) => entry.parent !== undefined && suits(entry))
      const [child] = at < 0 ? [] : waiting.splice(at, 1)
      run.urgent.unshift(waiting)
      if (child) return child
    }
    return undefined
  }

  /**
   * Reads until it finds a task whose agent is loaded; tasks of other agents are held. Reads nothing while many tasks of the
   * run wait for labels or for their agents: even a task behind them that could run has to wait.
   */
  #pull(run: Run): TaskEntry | undefined {
    const room = Math.max(MIN_ASIDE, this.#parts.fleet.room())
    while (run.sourceState === 'open' && run.aside < room) {
      const entry = this.read(run)
      if (entry === undefined) return undefined
      if (entry.agent.loaded) return entry
      this.#parts.loading.hold(entry)
    }
    return undefined
  }

  /** Reads one task that has to run. Answers tasks that need not run on the way. */
  read(run: Run): TaskEntry | undefined {
    try {
      while (!run.sink.full()) {
        const item = run.source.pull()
        if (typeof item === 'string') {
          run.sourceState = item === 'wait' ? 'waiting' : 'ended'
          break
        }
        if (item.restored !== undefined) {
          this.#parts.responses.restored(run, item)
          continue
        }
        const entry = this.makeEntry(run, item)
        if (item.skip !== undefined) this.#parts.responses.skipped(entry, item.skip)
        else if (item.crashed !== undefined) this.#parts.responses.lost(entry, item.crashed)
        else return entry
      }
    } catch (error) {
      // Nothing more can be read. Tasks that were read are finished and answered before the error is reported.
      run.sourceState = 'ended'
      run.error = error as Error
      run.source.close()
    }
    this.#parts.finished(run)
    return undefined
  }

  makeEntry(run: Run, item: ReadyTask): TaskEntry {
    const { index, id, task, packed, previous, results, rollout } = item
    const agent = this.#parts.agents.of(task.agent)
    const ready = packed ?? packTask(task, index)
    const neverRerun = task.rerun === 'never'
    const maxAttempts = task.maxAttempts ?? run.options.maxAttempts
    const requires = task.requires !== undefined && task.requires.length > 0 ? task.requires : undefined
    const info = ready.shown
    const ordinary = info === undefined && previous === undefined && results === undefined && requires === undefined
    const options: EntryOptions =
      ordinary && !neverRerun && maxAttempts === run.usualOptions.maxAttempts
        ? run.usualOptions
        : {
            maxAttempts,
            neverRerun,
            requires,
            info,
            previous,
            results,
            groupId: groupOf(item),
            rollout: rollout?.number,
          }
    const profile = this.#parts.profiles.of(run, agent, task.timeoutMs ?? run.options.timeoutMs, neverRerun)
    run.live++
    const entry = new TaskEntry(run, index, id, agent, profile, ready, options)
    if (item.record !== undefined) entry.record = item.record
    if (item.attempts !== undefined) entry.attempts = item.attempts
    return entry
  }

  enqueue(entry: TaskEntry, urgent: boolean): void {
    if (!entry.agent.loaded) this.#parts.loading.hold(entry)
    else (urgent ? entry.run.urgent : entry.run.ready).push(entry)
  }
}

/** Rollouts of one task are a group. */
export const groupOf = ({ task, rollout }: ReadyTask): string | undefined => task.groupId ?? rollout?.of
