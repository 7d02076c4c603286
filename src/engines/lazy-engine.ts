import { ManyworldsError } from '../errors.ts'
import type { BlobContent, CodeBundle, EngineEvents, Placement, RuntimeEngine } from './engine.ts'

/** The part of an engine that is loaded when the engine starts. */
export interface LoadedEngine {
  readonly maxWorkers: number
  readonly elastic: boolean
  offers?(labels: readonly string[]): boolean
  start(): Promise<void>
  scale(workers: number): void
  publish(bundle: CodeBundle): Promise<void>
  putBlob(blob: BlobContent): Promise<void>
  dropBlob(sha256: string): void
  keepAlive(alive: boolean): void
  stop(): Promise<void>
}

/**
 * An engine on other machines. Whatever it takes to talk to them is imported by `start`, so that a script that only
 * mentions the engine does not pay for it. Calls that come earlier are kept: `scale` and `keepAlive` apply as soon as the
 * engine is loaded; code and blobs wait until it has started.
 */
export abstract class LazyEngine implements RuntimeEngine {
  readonly apiVersion = 1
  abstract readonly name: string
  readonly #firstMaxWorkers: number
  readonly #started: PromiseWithResolvers<LoadedEngine> = Promise.withResolvers()
  #loaded: LoadedEngine | undefined
  #workers: number | undefined
  #alive = true
  #stopped = false

  /** `maxWorkers`: what to assume before the engine is loaded. */
  constructor(maxWorkers = 1) {
    this.#firstMaxWorkers = maxWorkers
    this.#started.promise.catch(() => {})
  }

  /** Called once, synchronously by `start`. */
  protected abstract load(placement: Placement, events: EngineEvents): Promise<LoadedEngine>

  get maxWorkers(): number {
    return this.#loaded?.maxWorkers ?? this.#firstMaxWorkers
  }

  get elastic(): boolean {
    return this.#loaded?.elastic ?? true
  }

  offers(labels: readonly string[]): boolean {
    return this.#loaded?.offers?.(labels) ?? false
  }

  async start(placement: Placement, events: EngineEvents, signal: AbortSignal): Promise<void> {
    try {
      const loaded = await this.load(placement, events)
      this.#loaded = loaded
      if (this.#stopped) return await loaded.stop()
      loaded.keepAlive(this.#alive)
      signal.addEventListener('abort', () => void this.stop(), { once: true })
      if (this.#workers !== undefined) loaded.scale(this.#workers)
      await loaded.start()
      this.#started.resolve(loaded)
    } catch (error) {
      this.#started.reject(error)
      throw error
    }
  }

  async scale(workers: number): Promise<void> {
    this.#workers = workers
    this.#loaded?.scale(workers)
  }

  /** May be called before the engine has started: code is bundled while the engine starts. */
  async publish(bundle: CodeBundle): Promise<void> {
    await (await this.#started.promise).publish(bundle)
  }

  async putBlob(blob: BlobContent): Promise<void> {
    await (await this.#started.promise).putBlob(blob)
  }

  async dropBlob(sha256: string): Promise<void> {
    ;(await this.#started.promise).dropBlob(sha256)
  }

  keepAlive(alive: boolean): void {
    this.#alive = alive
    this.#loaded?.keepAlive(alive)
  }

  async stop(): Promise<void> {
    this.#stopped = true
    // Calls that wait for the start must not wait forever. After the start this does nothing.
    this.#started.reject(
      new ManyworldsError('EXECUTOR_CLOSED', `the ${this.name} engine was stopped before it had started`),
    )
    await this.#loaded?.stop()
  }
}
