import type { AnyAgent } from '../agent.ts'
import { ManyworldsError } from '../errors.ts'
import { keyVariables } from '../models/secrets.ts'
import type { RunConfig } from '../run-config.ts'
import type { ResolvedConfig } from '../run-config-schema.ts'
import { requireDriver } from '../runners/load-driver.ts'
import type { PushSource } from '../runners/push-source.ts'
import type { TaskFor, TaskLike, TaskResponse } from '../task.ts'
import { mustPark, parkNow } from '../worker/role.ts'
import type { Dispatcher } from './dispatcher.ts'
import type { Run } from './run.ts'

interface Parts {
  readonly config: ResolvedConfig
  readonly dispatcher: Dispatcher
  readonly source: PushSource
}

/** A RunConfig, and how many tasks may wait. */
export interface ExecutorConfig extends Omit<RunConfig, 'sequenceDependent'> {
  /** Tasks that may be submitted and not yet finished; one more is refused. Default 100,000. */
  readonly maxQueueSize?: number
}

/**
 * Submit tasks and collect responses at any time. It has the same workers, guarantees and options as `Runners`, and is for
 * programs that do not know all their tasks at the start.
 *
 * @example
 * await using executor = new DistributedExecutor({ workerNum: 4 })
 * const id = executor.submitTask(shout.task('hello'))
 * const done = await executor.collectResults({ timeoutMs: 1000 })
 */
export class DistributedExecutor implements AsyncDisposable {
  /** Undefined in a worker, which imports the script only for its agents. */
  readonly #parts: Parts | undefined
  readonly #maxQueueSize: number
  #run: Run | undefined
  #opening: Promise<void> | undefined
  #done = new Map<string, TaskResponse>()
  #pending = 0
  #closed = false
  #over = false
  #told = false
  #error: Error | undefined
  #changed: (() => void)[] = []

  constructor(config: ExecutorConfig = {}) {
    if (typeof config !== 'object' || config === null)
      throw new ManyworldsError(
        'CONFIG_INVALID',
        `the configuration of an executor must be an object such as { workerNum: 4 }; it is ${String(config)}`,
      )
    const { maxQueueSize = 100_000, ...runConfig } = config
    if ('sequenceDependent' in runConfig)
      throw new ManyworldsError('CONFIG_INVALID', '`sequenceDependent` needs all tasks at once; use Runners.runTask()')
    if (!Number.isInteger(maxQueueSize) || maxQueueSize < 1)
      throw new ManyworldsError(
        'CONFIG_INVALID',
        `\`maxQueueSize\` must be a whole number of at least 1, it is ${String(maxQueueSize)}`,
      )
    this.#maxQueueSize = maxQueueSize
    if (mustPark()) return
    const { resolveRunConfig, makeDispatcher, placementOf, PushSource, runsInDriver } = requireDriver()
    const resolved = resolveRunConfig(runConfig)
    const placement = placementOf(resolved.env, resolved.showLogs ? 'show' : 'drop', keyVariables(resolved.models))
    const source = new PushSource(runsInDriver(resolved))
    this.#parts = { config: resolved, dispatcher: makeDispatcher(resolved, placement), source }
  }

  /** Tasks that were submitted and are not done. */
  get pending(): number {
    return this.#pending
  }

  /** Queues a task and returns its id. */
  submitTask<A extends AnyAgent>(task: TaskFor<A>): string {
    const { source } = this.#check()
    if (this.#pending >= this.#maxQueueSize)
      throw new ManyworldsError(
        'QUEUE_FULL',
        `${this.#pending} tasks are waiting or running, and maxQueueSize is ${this.#maxQueueSize}; call collectResults() before submitting more`,
      )
    const id = source.push(task as TaskLike)
    if (this.#pending++ === 0) this.#parts!.dispatcher.keepAlive(true)
    this.#opening ??= this.#open()
    return id
  }

  /** Returns the responses since the last call. If there are none but tasks are pending, waits for one, at most `timeoutMs`. */
  async collectResults({ timeoutMs }: { timeoutMs?: number } = {}): Promise<Map<string, TaskResponse>> {
    if (this.#done.size === 0 && this.#pending > 0 && this.#error === undefined) await this.#change(timeoutMs)
    if (this.#done.size === 0 && this.#error !== undefined) {
      this.#told = true
      throw this.#error
    }
    const done = this.#done
    this.#done = new Map()
    return done
  }

  /**
   * Waits for pending tasks (or cancels them) and ends the workers. Responses can still be collected afterwards. Rethrows the
   * run's error if no earlier call reported it.
   */
  async shutdown({ wait = true }: { wait?: boolean } = {}): Promise<void> {
    this.#closed = true
    this.#parts?.source.end()
    await this.#opening
    if (this.#run && !this.#over) {
      if (wait) this.#parts!.dispatcher.wake(this.#run)
      else this.#parts!.dispatcher.stopRun(this.#run, 'cancelled')
      while (!this.#over) await this.#change(undefined)
    }
    await this.#parts?.dispatcher.shutdown()
    if (this.#error === undefined || this.#told) return
    this.#told = true
    throw this.#error
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.shutdown()
  }

  #check(): Parts {
    if (this.#parts === undefined) {
      if (mustPark()) parkNow('executor.submitTask()')
      throw new ManyworldsError(
        'RUNNERS_IN_WORKER',
        'a task cannot use an executor of its script, which belongs to the driver; use await ctx.runTask(tasks)',
      )
    }
    if (this.#error) {
      this.#told = true
      throw this.#error
    }
    if (this.#closed) throw new ManyworldsError('EXECUTOR_CLOSED', 'the executor was shut down; make a new one')
    return this.#parts
  }

  async #open(): Promise<void> {
    const { dispatcher, config, source } = this.#parts!
    const end = (error: Error | undefined) => {
      this.#over = true
      this.#error = error
      this.#tell()
    }
    try {
      this.#run = await requireDriver().openRun(
        dispatcher,
        config,
        { source, all: undefined },
        {
          response: (_index, response) => {
            // An idle executor must not keep the program alive if the user forgets shutdown().
            if (--this.#pending === 0 && !this.#closed) dispatcher.keepAlive(false)
            this.#done.set(response.id, response)
            this.#tell()
          },
          full: () => false,
          end,
        },
        false,
      )
    } catch (error) {
      end(error as Error)
    }
  }

  #tell(): void {
    for (const changed of this.#changed.splice(0)) changed()
  }

  #change(timeoutMs: number | undefined): Promise<void> {
    return new Promise((resolve) => {
      const timer = timeoutMs === undefined ? undefined : setTimeout(resolve, timeoutMs)
      this.#changed.push(() => {
        clearTimeout(timer)
        resolve()
      })
    })
  }
}
