import { ManyworldsError } from '../../errors.ts'
import type { Application } from './application.ts'
import type { SparkOptions } from './options.ts'
import type { Room } from './room.ts'
import { reserveOf } from './server.ts'

/** Checks between two capacity queries: frequent at first, while executors are starting. */
const ROOM_LOOKS = { first: 1, later: 10, until: 20 } as const
/** After this many checks no more executors are expected. */
const SETTLED_LOOKS = 5
/** Spark replaces lost executors. Those still missing after this time may not come back. */
const SHRUNK_MS = 20_000

export interface SlotRoomHooks {
  /** There may be more slots than before, or no more are expected soon. */
  grew(): void
  settled(): void
  shrank(): void
}

/** How many slots Spark has room for. Executors come and go, so Spark is asked repeatedly. */
export class SlotRoom {
  readonly #options: SparkOptions
  readonly #inLocal: boolean
  readonly #workerNum: number
  readonly #hooks: SlotRoomHooks
  #room: Room | undefined
  #looked = 0
  #asking = false
  #smallerSince: number | undefined

  /** `workerNum`: the most workers that a local Spark (`inLocal`) has room for. */
  constructor(options: SparkOptions, inLocal: boolean, workerNum: number, hooks: SlotRoomHooks) {
    this.#options = options
    this.#inLocal = inLocal
    this.#workerNum = workerNum
    this.#hooks = hooks
  }

  get maxWorkers(): number {
    if (this.#room === undefined) return this.#inLocal ? this.#workerNum : 1
    return Math.max(1, this.#room.slots - this.reserve)
  }

  get elastic(): boolean {
    // Spark reports two until an executor has registered, and executors register one after the other.
    const early = !this.#inLocal && this.#looked < SETTLED_LOOKS && (this.#room?.slots ?? 0) <= 2
    return this.#room === undefined || this.#room.grows || early
  }

  /** All tasks that Spark can run at once. */
  get cores(): number {
    return this.#room!.slots
  }

  /** Cores left free for queries. */
  get reserve(): number {
    return reserveOf(this.#options)
  }

  get speculates(): boolean {
    return this.#room!.speculates
  }

  /** The first query. Throws if there can never be room for a worker. */
  async find(application: Application): Promise<void> {
    this.#room = await application.findRoom()
    const { slots, grows } = this.#room
    if (grows || slots > this.reserve) return
    throw new ManyworldsError(
      'SPARK_IMPOSSIBLE',
      `Spark can run ${slots} tasks at once, and ${this.reserve} are reserved for queries: no worker can be placed. Give it more cores, or set spark.reserve: ${Math.max(0, slots - 1)}`,
    )
  }

  /** To be called at every check. `asks`: whether the answer is needed. */
  async look(application: Application, asks: () => boolean): Promise<void> {
    const looks = ++this.#looked
    if (looks === SETTLED_LOOKS) this.#hooks.settled()
    const often = looks < ROOM_LOOKS.until ? ROOM_LOOKS.first : ROOM_LOOKS.later
    if (looks % often !== 0 || this.#inLocal || this.#asking || !asks()) return
    this.#asking = true
    const room = await application.findRoom().catch(() => undefined)
    this.#asking = false
    if (room !== undefined && asks()) this.#onRoom(room)
  }

  #onRoom(room: Room): void {
    const before = this.#room!.slots
    if (room.slots >= before) this.#smallerSince = undefined
    else this.#smallerSince ??= Date.now()
    if (room.slots > before) {
      this.#room = room
      this.#hooks.grew()
    } else if (this.#smallerSince !== undefined && Date.now() - this.#smallerSince > SHRUNK_MS) {
      this.#room = room
      this.#smallerSince = undefined
      this.#hooks.shrank()
    }
  }
}
