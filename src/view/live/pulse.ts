import { pragma } from '../../store/checks.ts'
import type { OpenStores, StoreLease } from '../read/open-stores.ts'

/** How often a store is asked whether it has changed. */
const POLL_MS = 250
/** A driver that was killed changes nothing in its store, so clients look at least this often. */
const AT_LEAST_MS = 1000

/** Notifies clients when a store has changed. All clients of a store share one pulse. */
export class Pulse implements Disposable {
  readonly #stores: OpenStores
  readonly #path: string | undefined
  readonly #timer: NodeJS.Timeout
  #lease: StoreLease | undefined
  #version = -1
  #beats = 1
  #lastBeat = performance.now()
  #waiting: (() => void)[] = []
  /** The number of clients that use it. */
  users = 0

  /** Without a path, it only notifies at regular intervals. */
  constructor(stores: OpenStores, path: string | undefined) {
    this.#stores = stores
    this.#path = path
    this.#timer = setInterval(() => this.#look(), POLL_MS).unref()
  }

  get beats(): number {
    return this.#beats
  }

  /** Resolves when there was a beat after beat number `since`, or when the signal is aborted. */
  async wait(since: number, signal: AbortSignal): Promise<void> {
    if (this.#beats > since || signal.aborted) return
    await new Promise<void>((resolve) => {
      // A page may be open for days, with a beat every second, so the listener must be removed from the signal.
      const done = () => {
        signal.removeEventListener('abort', done)
        resolve()
      }
      signal.addEventListener('abort', done)
      this.#waiting.push(done)
    })
  }

  #look(): void {
    const version = this.#dataVersion()
    const isOld = performance.now() - this.#lastBeat > AT_LEAST_MS
    if (version === this.#version && !isOld) return
    this.#version = version
    this.#lastBeat = performance.now()
    this.#beats++
    const waiting = this.#waiting
    this.#waiting = []
    for (const resolve of waiting) resolve()
  }

  #dataVersion(): number {
    if (this.#path === undefined) return 0
    try {
      this.#lease ??= this.#stores.take(this.#path)
      return pragma(this.#lease.db, 'data_version')
    } catch {
      // The clients get the error when they read the store again.
      this.#release()
      return -1
    }
  }

  #release(): void {
    this.#lease?.[Symbol.dispose]()
    this.#lease = undefined
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer)
    this.#release()
  }
}

/** The pulses of all stores that have clients. */
export class Pulses implements Disposable {
  readonly #stores: OpenStores
  readonly #all = new Map<string | undefined, Pulse>()

  constructor(stores: OpenStores) {
    this.#stores = stores
  }

  /** Dispose of it when done. */
  take(path: string | undefined): { readonly pulse: Pulse } & Disposable {
    let pulse = this.#all.get(path)
    if (pulse === undefined) this.#all.set(path, (pulse = new Pulse(this.#stores, path)))
    const own = pulse
    own.users++
    return {
      pulse: own,
      [Symbol.dispose]: () => {
        if (--own.users > 0) return
        own[Symbol.dispose]()
        this.#all.delete(path)
      },
    }
  }

  [Symbol.dispose](): void {
    for (const pulse of this.#all.values()) pulse[Symbol.dispose]()
    this.#all.clear()
  }
}
