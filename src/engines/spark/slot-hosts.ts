import type { HostInfo } from '../../network/host-messages.ts'
import type { RemoteNode } from '../nodes/remote-node.ts'

export interface SlotHostsHooks {
  /** How many slots there are to be: those of the lowest numbers. */
  most(): number
  /** A slot has called, and is one of those that are wanted. */
  called(slot: number): void
  /** It was told to end, and Spark does not start it again. */
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

  /** Whether it is to have a worker: it is wanted, and no other has been started in its place. */
  isUsed(host: RemoteNode): boolean {
    return this.#isWanted(host) && this.#isLatest(host)
  }

  /** One has called. `stopped`: nobody needs it any more. */
  join(host: RemoteNode, { host: machine, slot }: HostInfo, stopped: boolean): void {
    host.name = slot === undefined ? machine : `${machine}/slot-${slot}`
    if (slot === undefined || stopped || !this.#isWanted(host)) {
      if (slot !== undefined) this.#hooks.sentAway(slot)
      return void host.leave(0)
    }
    this.#hooks.called(slot)
    // Spark has started it a second time, because it believes the first one to be lost. It knows only of the second.
    const before = this.#here.get(slot)
    this.#here.set(slot, host)
    if (before) {
      before.giveBack('Spark has started another in its place')
      if (before.workers === 0) void before.leave(0)
    }
  }

  /** Those that are too many finish what they have; then Spark gets their place back. */
  giveBack(reason: string): void {
    for (const host of this.#here.values()) if (!this.#isWanted(host)) host.giveBack(reason)
    for (const host of this.#here.values()) this.releaseIfSpare(host)
  }

  /** A slot that is not used, and has no worker any more, ends; Spark gets its place back. */
  releaseIfSpare(host: RemoteNode): void {
    if (host.info?.slot === undefined || host.workers > 0) return
    if (!this.isUsed(host)) this.release(host)
  }

  /** Sends a slot away: it ends as it should, and Spark does not start it again. */
  release(host: RemoteNode): void {
    const slot = host.info!.slot!
    if (this.forget(host)) this.#hooks.sentAway(slot)
    void host.leave(0)
  }

  /** It is gone. False: it was not here, or another is in its place. */
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
