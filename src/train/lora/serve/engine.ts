import { setTimeout as sleep } from 'node:timers/promises'
import { ManyworldsError } from '../../../errors.ts'
import { wordsOf } from '../../../text/thrown.ts'
import type { LoraSettings } from '../settings.ts'
import { Sidecar } from '../sidecar.ts'

/** For calls between two turns of sampling. */
const CALL_MS = 10 * 60_000
/** After this many restarts within the window, the process is not restarted again. */
const MAX_RESTARTS = 5
const RESTART_WINDOW_MS = 10 * 60_000
const RESTART_PAUSE_MS = 200

export interface SamplerInfo {
  /** Whether, on this machine, a request gets the same bits regardless of what is sampled in the same batch. */
  readonly exact: boolean
  /** The maximum number of prompt and completion tokens together. */
  readonly context: number
  readonly stopIds: readonly number[]
  readonly vocabulary: number
}

/** The sampling process died, and its running requests are lost. */
export class SidecarLost extends Error {}

/** A sampling sidecar that is restarted when it dies, with the adapters it had. */
export class Engine {
  readonly #settings: LoraSettings
  readonly #notice: (line: string) => void
  readonly #adapters = new Map<string, Uint8Array | null>()
  readonly #restarts: number[] = []
  readonly #ended = new AbortController()
  #sidecar: Sidecar | undefined
  #starting: Promise<Sidecar> | undefined
  #info: SamplerInfo | undefined

  private constructor(settings: LoraSettings, notice: (line: string) => void) {
    this.#settings = settings
    this.#notice = notice
  }

  static async start(settings: LoraSettings, notice: (line: string) => void): Promise<Engine> {
    const engine = new Engine(settings, notice)
    await engine.#ready()
    return engine
  }

  get info(): SamplerInfo {
    return this.#info!
  }

  get pid(): number | undefined {
    return this.#sidecar?.pid
  }

  /** Adapters by name; null weights mean the base model. */
  get adapters(): ReadonlyMap<string, Uint8Array | null> {
    return this.#adapters
  }

  has(name: string, weights: Uint8Array | null): boolean {
    const loaded = this.#adapters.get(name)
    if (!loaded || !weights) return loaded === weights
    return Buffer.compare(loaded, weights) === 0
  }

  async load(name: string, weights: Uint8Array | null): Promise<void> {
    if (weights !== null) await this.call('loadAdapter', { name }, [weights])
    this.#adapters.set(name, weights)
  }

  async unload(name: string): Promise<void> {
    const weights = this.#adapters.get(name)
    this.#adapters.delete(name)
    if (weights && this.#sidecar?.ended === false) await this.call('unloadAdapter', { name })
  }

  /** @throws SidecarLost if the process dies during the call, or cannot be restarted. */
  async call<Result>(
    op: string,
    args: unknown,
    parts: readonly Uint8Array[] = [],
  ): Promise<{ result: Result; parts: Uint8Array[] }> {
    const sidecar = await this.#ready()
    try {
      return await sidecar.call<Result>(op, args, parts, CALL_MS)
    } catch (error) {
      if (sidecar.ended) throw new SidecarLost(wordsOf(error).message, { cause: error })
      throw error
    }
  }

  async close(): Promise<void> {
    this.#ended.abort()
    const starting = await this.#starting?.catch(() => undefined)
    await (starting ?? this.#sidecar)?.close()
  }

  async #ready(): Promise<Sidecar> {
    if (this.#sidecar?.ended === false) return this.#sidecar
    this.#starting ??= this.#start().finally(() => {
      this.#starting = undefined
    })
    return this.#starting
  }

  async #start(): Promise<Sidecar> {
    const isFirst = this.#info === undefined
    if (this.#ended.signal.aborted) throw new SidecarLost('the sampler was closed')
    if (!isFirst) await this.#mayRestart()
    const sidecar = await Sidecar.start({ notice: this.#notice, signal: this.#ended.signal })
    try {
      await sidecar.call('open', { ...this.#settings, role: 'sample' })
      // Exactness is tested only once, because the machine is the same.
      const { result } = await sidecar.call<SamplerInfo>('samplerInfo', { test: isFirst }, [], CALL_MS)
      this.#info ??= result
      for (const [name, weights] of this.#adapters)
        if (weights !== null) await sidecar.call('loadAdapter', { name }, [weights], CALL_MS)
    } catch (error) {
      await sidecar.close()
      if (isFirst) throw error
      throw new SidecarLost(wordsOf(error).message, { cause: error })
    }
    this.#sidecar = sidecar
    return sidecar
  }

  async #mayRestart(): Promise<void> {
    const now = performance.now()
    while (this.#restarts.length > 0 && now - this.#restarts[0]! > RESTART_WINDOW_MS) this.#restarts.shift()
    if (this.#restarts.length >= MAX_RESTARTS)
      throw new SidecarLost(
        `the Python process of the sampler died ${MAX_RESTARTS + 1} times within ${RESTART_WINDOW_MS / 60_000} minutes and is not restarted`,
      )
    this.#restarts.push(now)
    this.#notice('the Python process of the sampler died; restarting it')
    await sleep(RESTART_PAUSE_MS * this.#restarts.length)
  }
}

/** An invalid request that only Python could detect, such as messages that the chat template does not support. */
export const isInvalid = (error: unknown): error is ManyworldsError =>
  error instanceof ManyworldsError && (error.code === 'LEARNER_INVALID' || error.code === 'POLICY_INVALID')
