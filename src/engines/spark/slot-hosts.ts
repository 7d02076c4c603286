import type { HostInfo } from '../../network/host-messages.ts'
import type { RemoteNode } from '../nodes/remote-node.ts'

export interface SlotHostsHooks {
  /** How many slots are wanted: those with the lowest numbers. */
  most(): number
  /** A wanted slot has called. */
  called(slot: number): void
  /** It was told to end, and Spark will not restart it. */
  sentAway(slot: number): void
}

/** The slots that have called this process, by their number. Each is a host with one worker. */
export class SlotHosts {
  readonly #hooks: SlotHostsHooks
  readonly #here = new Map<number, RemoteNode>()

  constructor(hooks: SlotHostsHooks) {
    this.#hooks = hooks
  }

  get size(): number {
    return this.#here.size
  }

  get numbers(): Iterable<number> {
    return this.#here.keys()
  }

  get all(): readonly RemoteNode[] {
    return [...this.#here.values()]
  }

  has(slot: number): boolean {
    return this.#here.has(slot)
  }

  /** Whether it should have a worker: it is wanted and was not replaced. */
  isUsed(host: RemoteNode): boolean {
    return this.#isWanted(host) && this.#isLatest(host)
  }

  /** A slot has called. `stopped`: it is no longer needed. */
  join(host: RemoteNode, { host: machine, slot }: HostInfo, stopped: boolean): void {
    host.name = slot === undefined ? machine : `${machine}/slot-${slot}`
    if (slot === undefined || stopped || !this.#isWanted(host)) {
      if (slot !== undefined) this.#hooks.sentAway(slot)
      return void host.leave(0)
    }
    this.#hooks.called(slot)
    // Spark started it again because it believes that the first one is lost. Use the second: Spark no longer knows the first.
    const before = this.#here.get(slot)
    this.#here.set(slot, host)
    if (before) {
      before.giveBack('Spark has started another in its place')
      if (before.workers === 0) void before.leave(0)
    }
  }

  /** Surplus slots finish their tasks; then Spark gets their cores back. */
  giveBack(reason: string): void {
    for (const host of this.#here.values()) if (!this.#isWanted(host)) host.giveBack(reason)
    for (const host of this.#here.values()) this.releaseIfSpare(host)
  }

  /** An unused slot without a worker ends; Spark gets its core back. */
  releaseIfSpare(host: RemoteNode): void {
    if (host.info?.slot === undefined || host.workers > 0) return
    if (!this.isUsed(host)) this.release(host)
  }

  /** Tells a slot to end normally, so that Spark does not restart it. */
  release(host: RemoteNode): void {
    const slot = host.info!.slot!
    if (this.forget(host)) this.#hooks.sentAway(slot)
    void host.leave(0)
  }

  /** A slot is gone. False: it was unknown or already replaced. */
  forget(host: RemoteNode): boolean {
    if (!this.#isLatest(host)) return false
    return this.#here.delete(host.info!.slot!)
  }

  #isWanted({ info }: RemoteNode): boolean {
    return info?.slot !== undefined && info.slot < this.#hooks.most()
  }

  #isLatest(host: RemoteNode): boolean {
    const slot = host.info?.slot
    return slot !== undefined && this.#here.get(slot) === host
  }
}
