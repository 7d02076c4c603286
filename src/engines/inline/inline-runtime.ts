import { AsyncLocalStorage } from 'node:async_hooks'
import type { EngineEvents, Placement, RuntimeEngine, WorkerLink } from '../engine.ts'

/**
 * The context in which this module was loaded: outside of any call. Driver code must not run in the context of a task, nor a
 * task in the context of the call that happened to start the engine, which may be another request of a server.
 */
const outside = AsyncLocalStorage.snapshot()

/** The interval of a timer that keeps the process alive: the link to an inline worker has no handle that would. */
const HOLD_MS = 2 ** 30

/**
 * Runs tasks in the driver's own process, for breakpoints and unit tests. One worker, whatever `workerNum` says. Nothing
 * protects the driver from its tasks: see docs/engines.md.
 *
 * @example
 * const response = await Runners.runTask(shout.task('hello'), { engine: inline(), store: false })
 */
export class InlineRuntime implements RuntimeEngine {
  readonly apiVersion = 1
  readonly name = 'inline'
  readonly maxWorkers = 1
  #link: WorkerLink | undefined
  #generation = 0
  #stopped = false
  #hold: NodeJS.Timeout | undefined
  #restore = () => {}

  async start(placement: Placement, events: EngineEvents, signal: AbortSignal): Promise<void> {
    signal.addEventListener('abort', () => void this.stop(), { once: true })
    const { startInlineWorker } = await import('./inline-worker.ts')
    const startOne = () => {
      if (this.#stopped) return
      const link = startInlineWorker(this.#generation++, outside, (reason) => events.notice(`inline worker: ${reason}`))
      this.#link = link
      void link.closed.then(startOne)
      events.link(link)
    }
    if (!this.#stopped) this.#restore = setVariables(placement.remote.env)
    startOne()
  }

  /** There is always one worker. */
  async scale(): Promise<void> {}

  keepAlive(alive: boolean): void {
    clearInterval(this.#hold)
    this.#hold = alive && !this.#stopped ? setInterval(() => {}, HOLD_MS) : undefined
  }

  async stop(): Promise<void> {
    if (this.#stopped) return
    this.#stopped = true
    this.keepAlive(false)
    this.#link?.kill()
    await this.#link?.closed
    this.#restore()
  }
}

/** Sets the run's `env` in this process. Our own variables are left out: they would mark this process as a worker. */
function setVariables(env: Readonly<Record<string, string>>): () => void {
  const names = Object.keys(env).filter((name) => !name.startsWith('MANYWORLDS_'))
  const before = names.map((name) => [name, process.env[name]] as const)
  for (const name of names) process.env[name] = env[name]
  return () => {
    for (const [name, value] of before) {
      if (value === undefined) delete process.env[name]
      else process.env[name] = value
    }
  }
}
