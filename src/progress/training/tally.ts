import type { EpochReport, TestReport } from '../../train/pipeline/epoch-report.ts'
import { bestOf } from '../../train/pipeline/evaluation.ts'
import type { TrainingGoal, TrainingStart } from '../../train/pipeline/observer.ts'
import type { EvalRow, UpdateRow } from '../../train/pipeline/training-record.ts'
import { RecentRate } from '../recent-rate.ts'
import type { Measure } from './figure-text.ts'

/** An estimate that lies further ahead would be silly. */
const ETA_MAX_MS = 100 * 24 * 3_600_000

/** How far a training has come. */
export interface TrainingProgress {
  readonly id: string
  /** What is going on: "update 7", "validation of version 12"; undefined before the first run. */
  readonly what: string | undefined
  /** Episodes of that. */
  readonly done: number
  readonly total: number
  /** Episodes per second, lately. */
  readonly perSecond: number | undefined
  /** 0 before the first. */
  readonly epoch: number
  /** Infinite: nobody has said. */
  readonly epochs: number
  /** All of them, those of earlier sessions included. */
  readonly updates: number
  readonly version: number
  /** Episodes of this session that updates have learned from. */
  readonly episodes: number
  /** How good each update's episodes were, by this measure. */
  readonly curve: readonly number[]
  readonly measure: Measure
  /** The last one. */
  readonly validation: EvalRow | undefined
  /** How long it will still take; undefined until it can be known. */
  readonly etaMs: number | undefined
  readonly elapsedMs: number
}

/** Follows a training. */
export class TrainingTally {
  readonly start: TrainingStart
  readonly #clock: () => number
  readonly #startedAt: number
  readonly #rate: RecentRate
  readonly #updates: Pick<UpdateRow['report'], 'successRate' | 'reward'>[] = []
  readonly #evaluations: EvalRow[]
  /** Those that go on, in the order in which they began: collections may overlap. */
  readonly #runs = new Map<string, { readonly what: string; readonly total: number; done: number }>()
  #episodes = 0
  #goal: TrainingGoal | undefined
  /** Episodes since the goal was told, restored ones included: those are done too. */
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
    this.#episodes += row.report.episodes
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
    // What the learner waits for.
    const { what, done = 0, total = 0 } = runs.find((run) => run.done < run.total) ?? runs.at(-1) ?? {}
    const perSecond = this.#rate.perSecond(now)
    const measure = this.#updates.some(({ successRate }) => successRate !== null) ? 'success' : 'reward'
    return {
      ...{ id: this.start.id, what, done, total, perSecond },
      ...{ epoch: this.#epoch, epochs: this.#goal?.epochs ?? Number.POSITIVE_INFINITY, updates: this.#updates.length },
      ...{ version: this.#version, episodes: this.#episodes, measure },
      curve: this.#updates.flatMap(({ successRate, reward }) => (measure === 'success' ? successRate : reward) ?? []),
      validation: this.#evaluations.findLast(({ split }) => split === 'validation'),
      etaMs: this.#etaMs(perSecond),
      elapsedMs: now - this.#startedAt,
    }
  }

  #add({ epoch, report, versionOut, curveSha }: UpdateRow): void {
    const { successRate, reward } = report
    this.#updates.push({ successRate, reward })
    this.#epoch = epoch
    this.#version = versionOut ?? this.#version
    this.#digest = curveSha
  }

  /** The time for learning is part of it: the rate counts all the time that goes by. */
  #etaMs(perSecond: number | undefined): number | undefined {
    if (!this.#goal || !perSecond) return undefined
    const left = this.#goal.left - this.#sinceGoal
    const etaMs = (1000 * left) / perSecond
    return left > 0 && etaMs <= ETA_MAX_MS ? etaMs : undefined
  }
}
