import { ManyworldsError } from '../../errors.ts'
import { packBundle } from '../../network/blob.ts'
import type { CodeBundle } from '../engine.ts'
import type { Bridge, BridgeEvent } from './bridge.ts'
import { Fetches, type Receiver } from './fetches.ts'

/** The code of the workers, in Ray's object store. Each bundle is put there once; machines fetch it from there. */
export class PublishedCode {
  readonly #bridge: () => Bridge
  readonly #bundles = new Map<string, CodeBundle>()
  readonly #puts = new Map<string, PromiseWithResolvers<void>>()
  readonly #fetches = new Fetches()

  constructor(bridge: () => Bridge) {
    this.#bridge = bridge
  }

  /** The hashes of all code that a new worker needs. */
  get hashes(): string[] {
    return [...this.#bundles.keys()]
  }

  /** Workers that start later get all code; `receivers`, which exist already, get this bundle now. */
  async publish(bundle: CodeBundle, receivers: () => readonly Receiver[]): Promise<void> {
    this.#bundles.set(bundle.sha256, bundle)
    await this.#put(bundle)
    const codes = [bundle.sha256]
    const bring = (receiver: Receiver) =>
      this.#fetches.ask(receiver, (request) =>
        this.#bridge().control({ op: 'bring', worker: receiver.worker, codes, request }),
      )
    await Promise.all(receivers().map(bring))
  }

  onPublished({ sha256, error }: Extract<BridgeEvent, { event: 'published' }>): void {
    const put = this.#puts.get(sha256)
    if (error === undefined) return put?.resolve()
    this.#puts.delete(sha256)
    const size = packBundle(this.#bundles.get(sha256)!).byteLength / 2 ** 20
    // Later workers must not be told to fetch it.
    this.#bundles.delete(sha256)
    const what = `the code (${size.toFixed(1)} MB) could not be put into Ray's object store`
    put?.reject(new ManyworldsError('RAY_FAILED', `${what}: ${error}. Leave large packages out with bundle.external`))
  }

  onBrought({ request }: Extract<BridgeEvent, { event: 'brought' }>): void {
    this.#fetches.answered(request)
  }

  async #put(bundle: CodeBundle): Promise<void> {
    let put = this.#puts.get(bundle.sha256)
    if (put === undefined) {
      put = Promise.withResolvers()
      this.#puts.set(bundle.sha256, put)
      this.#bridge().publish(bundle.sha256, packBundle(bundle))
    }
    await put.promise
  }
}
