import type { EpochReport, TestReport } from '../../train/pipeline/epoch-report.ts'
import { bestOf } from '../../train/pipeline/evaluation.ts'
import type { TrainingGoal, TrainingStart } from '../../train/pipeline/observer.ts'
import type { EvalRow, UpdateRow } from '../../train/pipeline/training-record.ts'
import { RecentRate } from '../recent-rate.ts'
import type { Measure } from './figure-text.ts'

/** Longer estimates are not shown. */
const ETA_MAX_MS = 100 * 24 * 3_600_000

/** The progress of a training. */
export interface TrainingProgress {
  readonly id: string
  /** What is running: "update 7", "validation of version 12"; undefined before the first run. */
  readonly what: string | undefined
  /** Finished episodes of it. */
  readonly done: number
  readonly total: number
  /** The recent number of episodes per second. */
  readonly perSecond: number | undefined
  /** 0 before the first epoch. */
  readonly epoch: number
  /** Infinite if there is no limit. */
  readonly epochs: number
  /** The number of updates, including earlier sessions. */
  readonly updates: number
  readonly version: number
  /** Episodes that updates were trained on, including earlier sessions. */
  readonly episodes: number
  /** The same of this session alone. */
  readonly sessionEpisodes: number
  /** The result of each update's episodes, by `measure`. */
  readonly curve: readonly number[]
  readonly measure: Measure
  /** The last validation. */
  readonly validation: EvalRow | undefined
  /** The estimated remaining time; undefined until there is enough data. */
  readonly etaMs: number | undefined
  readonly elapsedMs: number
}

/** Collects the progress of a training. */
export class TrainingTally {
  readonly start: TrainingStart
  readonly #clock: () => number
  readonly #startedAt: number
  readonly #rate: RecentRate
  readonly #updates: Pick<UpdateRow['report'], 'successRate' | 'reward'>[] = []
  readonly #evaluations: EvalRow[]
  /** Runs in progress, in the order in which they started: collections may overlap. */
  readonly #runs = new Map<string, { readonly what: string; readonly total: number; done: number }>()
  #episodes = 0
  #sessionEpisodes = 0
  #goal: TrainingGoal | undefined
  /** Finished episodes since the goal was reported, including restored ones. */
  #sinceGoal = 0
  #epoch = 0
  #version = 0
  #digest: string | undefined
  #test: TestReport | undefined

  constructor(start: TrainingStart, clock: () => number = () => performance.now()) {
    this.start = start
    this.#clock = clock
    this.#startedAt = clock()
    this.#rate = new RecentRate(this.#startedAt)
    this.#evaluations = [...start.evaluations]
    for (const row of start.updates) this.#add(row)
  }

  goal(goal: TrainingGoal): void {
    this.#goal = goal
    this.#epoch = goal.epoch
    this.#sinceGoal = 0
  }

  run(what: string, total: number, runId: string): void {
    for (const [id, run] of this.#runs) if (run.done >= run.total) this.#runs.delete(id)
    this.#runs.set(runId, { what, total, done: 0 })
  }

  episode(runId: string, restored: boolean): void {
    const run = this.#runs.get(runId)
    if (run) run.done++
    this.#sinceGoal++
    if (!restored) this.#rate.add()
  }

  update(row: UpdateRow): void {
    this.#sessionEpisodes += row.report.episodes
    this.#add(row)
  }

  evaluation(row: EvalRow): void {
    this.#evaluations.push(row)
  }

  epoch({ test }: EpochReport): void {
    if (test) this.#test = test
  }

  /** SHA-256 of the curve; undefined before the first update. */
  get digest(): string | undefined {
    return this.#digest
  }

  get test(): TestReport | undefined {
    return this.#test
  }

  /** The best version by validation. Undefined: none was evaluated. */
  get best(): EvalRow | undefined {
    return bestOf(this.#evaluations)
  }

  snapshot(): TrainingProgress {
    const now = this.#clock()
    const runs = [...this.#runs.values()]
    // The run that the learner waits for.
    const { what, done = 0, total = 0 } = runs.find((run) => run.done < run.total) ?? runs.at(-1) ?? {}
    const perSecond = this.#rate.perSecond(now)
    const measure = this.#updates.some(({ successRate }) => successRate !== null) ? 'success' : 'reward'
    return {
      ...{ id: this.start.id, what, done, total, perSecond },
      ...{ epoch: this.#epoch, epochs: this.#goal?.epochs ?? Number.POSITIVE_INFINITY, updates: this.#updates.length },
      ...{ version: this.#version, episodes: this.#episodes, sessionEpisodes: this.#sessionEpisodes, measure },
      curve: this.#updates.flatMap(({ successRate, reward }) => (measure === 'success' ? successRate : reward) ?? []),
      validation: this.#evaluations.findLast(({ split }) => split === 'validation'),
      etaMs: this.#etaMs(perSecond),
      elapsedMs: now - this.#startedAt,
    }
  }

  #add({ epoch, report, versionOut, curveSha }: UpdateRow): void {
    const { successRate, reward, episodes } = report
    this.#episodes += episodes
    this.#updates.push({ successRate, reward })
    this.#epoch = epoch
    this.#version = versionOut ?? this.#version
    this.#digest = curveSha
  }

  /** The rate is per elapsed time, so it includes the time for learning. */
  #etaMs(perSecond: number | undefined): number | undefined {
    if (!this.#goal || !perSecond) return undefined
    const left = this.#goal.left - this.#sinceGoal
    const etaMs = (1000 * left) / perSecond
    return left > 0 && etaMs <= ETA_MAX_MS ? etaMs : undefined
  }
}
