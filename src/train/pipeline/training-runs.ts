import type { AnyAgent } from '../../agent.ts'
import type { PolicyMode } from '../../agents/policy.ts'
import type { StepAgentParams } from '../../agents/step-agent.ts'
import { ManyworldsError } from '../../errors.ts'
import { type Outcome, outcomeOf } from '../../grade/outcome.ts'
import type { RunObserver } from '../../progress/observer.ts'
import type { RunConfig } from '../../run-config.ts'
import { loadDriver } from '../../runners/load-driver.ts'
import { ResponseStream } from '../../runners/response-stream.ts'
import type { RunControl, RunHost } from '../../runners/run-host.ts'
import type { TasksInput } from '../../runners/source-of.ts'
import type { TaskLike, TaskResponse } from '../../task.ts'
import type { Trajectory } from '../../trajectory/trajectory.ts'
import type { Published } from '../learner.ts'
import { distribute } from '../parallel-task-executor.ts'
import { compareRollouts } from '../rollout-order.ts'
import type { GroupWatch } from './collection-ahead.ts'
import type { ActingVersion, ServedVersions } from './served-versions.ts'
import type { NamedTask } from './task-sets.ts'
import type { EvalRow } from './training-record.ts'

/** One run of a training. */
export interface TrainingRun {
  readonly runId: string
  readonly seed: number
  readonly rollouts: number
  readonly tasks: readonly NamedTask[]
  readonly split: 'train' | EvalRow['split']
  /** The version that acts. */
  readonly by: Published
  readonly mode: PolicyMode
  /** Retry rollouts that failed in an earlier session. */
  readonly retryFailed?: boolean
  /** Is notified when workers take groups. */
  readonly watch?: GroupWatch
}

/** The training was stopped by a signal or by the host program before a run finished. */
export class Stopped extends Error {
  override readonly name = 'Stopped'
}

/** The runs of a training. Each continues where an earlier session stopped. */
export class TrainingRuns {
  readonly #agent: AnyAgent
  readonly #config: RunConfig
  readonly #observer: (runId: string) => Partial<RunObserver>
  readonly #served: ServedVersions
  readonly #active = new Set<RunControl>()
  #stopped = false

  constructor(
    agent: AnyAgent,
    config: RunConfig,
    served: ServedVersions,
    observer: (runId: string) => Partial<RunObserver>,
  ) {
    this.#agent = agent
    this.#served = served
    this.#config = config
    this.#observer = observer
  }

  /** Tasks currently running on workers. */
  running(): number {
    let sum = 0
    for (const run of this.#active) sum += run.running()
    return sum
  }

  /** Starts nothing more. Running tasks may finish within `graceMs`, then they are cancelled. */
  stop(graceMs: number): void {
    this.#stopped = true
    for (const run of this.#active) run.stop(graceMs)
  }

  /** False if nothing is stored, so nothing can be retried. */
  get stored(): boolean {
    return this.#config.store !== false
  }

  get stopped(): boolean {
    return this.#stopped || this.#config.signal?.aborted === true
  }

  /** The trajectories of a run, sorted by `compareRollouts`. */
  async collect(run: TrainingRun): Promise<Trajectory[]> {
    const trajectories = await this.#served.use(run.by, async (acting) => {
      const found: Trajectory[] = []
      const tasks = this.#tasksOf(run, acting)
      const source = run.watch ? watched(tasks, run.watch) : tasks
      const stream = distribute(source, this.#configOf(run, acting), (tasks, config) => this.#stream(tasks, config))
      for await (const trajectory of stream) found.push(trajectory)
      return found
    })
    this.#expectAll(run, trajectories.length)
    return trajectories.sort(compareRollouts)
  }

  /**
   * The outcomes of the rollouts of a run, sorted by id, because a mean must not depend on which rollout finished
   * first.
   */
  async judge(run: TrainingRun): Promise<Outcome[]> {
    const seen = await this.#served.use(run.by, async (acting) => {
      const found: { readonly id: string; readonly outcome: Outcome }[] = []
      for await (const response of this.#stream(this.#tasksOf(run, acting), this.#configOf(run, acting)))
        found.push({ id: response.id, outcome: outcomeOf(response) })
      return found
    })
    this.#expectAll(run, seen.length)
    return seen.sort((a, b) => (a.id < b.id ? -1 : 1)).map(({ outcome }) => outcome)
  }

  /** Runs one task of another agent as part of the training. */
  async ask(runId: string, task: TaskLike, isResumed: boolean): Promise<TaskResponse> {
    // These options are for the episodes.
    const { grade: _, timeoutMs: __, blobs: ___, ...rest } = this.#config
    const config = {
      ...rest,
      runId,
      seed: 0,
      rollouts: 1,
      ...(rest.store !== false && { resume: 'auto', acceptChanges: true }),
    }
    for (const retryFailed of isResumed ? [false, true] : [false]) {
      if (this.stopped) throw new Stopped()
      for await (const response of this.#stream([task], { ...config, ...(retryFailed && { retryFailed }) })) {
        if (this.stopped && response.status === 'cancelled') throw new Stopped()
        // What made an earlier session's question fail may have been fixed.
        if (response.success || !response.restored || retryFailed) return response
      }
    }
    throw new Stopped()
  }

  #expectAll({ runId, tasks, rollouts }: TrainingRun, count: number): void {
    if (this.stopped) throw new Stopped()
    if (count !== tasks.length * rollouts)
      throw new ManyworldsError(
        'TRAINING_FAILED',
        `run '${runId}' ended after ${count} of ${tasks.length * rollouts} episodes`,
      )
  }

  #tasksOf({ tasks, split, mode }: TrainingRun, { ref }: ActingVersion): TaskLike[] {
    const params = { ...(this.#agent.params as StepAgentParams), policy: ref, mode }
    const agent = this.#agent.withParams(params)
    return tasks.map((task) => ({
      ...task,
      agent,
      metadata: { ...task.metadata, ...(split !== 'off-task' && { split }) },
    }))
  }

  #configOf({ runId, seed, rollouts, retryFailed }: TrainingRun, { bytes, models: served }: ActingVersion): RunConfig {
    const { blobs, models } = this.#config
    return {
      ...this.#config,
      ...{ runId, seed, rollouts },
      // The training compares its own settings, and its servers may have other addresses than before.
      ...(this.#config.store !== false && { resume: 'auto', acceptChanges: true }),
      ...(retryFailed && { retryFailed }),
      ...(bytes && { blobs: { ...blobs, 'manyworlds policy': bytes } }),
      ...(served && { models: { ...models, ...served } }),
    }
  }

  #stream(tasks: TasksInput, config: RunConfig): ResponseStream<TaskResponse> {
    return new ResponseStream(async (sink) => {
      const { startRun } = await loadDriver()
      return startRun(tasks, config, sink, true, this.#host)
    })
  }

  /** The host of these runs: the training itself, instead of the program around it. */
  readonly #host: RunHost = {
    configure: (config) => config,
    observe: ({ runId }) => ({ ...IGNORED, ...this.#observer(runId) }),
    started: (run) => {
      this.#active.add(run)
      if (this.#stopped) run.stop(0)
    },
    ended: (run) => {
      this.#active.delete(run)
      return false
    },
  }
}

/** A generator, so that tasks are read one at a time, when a worker has capacity. */
function* watched(tasks: readonly TaskLike[], watch: GroupWatch): Generator<TaskLike> {
  for (const task of tasks) {
    watch.started()
    yield task
  }
  watch.room()
}

const ignore = () => {}
const IGNORED: RunObserver = { response: ignore, retry: ignore, total: ignore, notice: ignore, end: ignore }
