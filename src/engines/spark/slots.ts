import { setTimeout as sleep } from 'node:timers/promises'
import { ManyworldsError } from '../../errors.ts'
import type { SlotOrder } from '../../host/slot-order.ts'
import { showAddress } from '../../network/address.ts'
import type { HostInfo } from '../../network/host-messages.ts'
import { counted } from '../../text/quantities.ts'
import type { CodeBundle, EngineEvents, Placement } from '../engine.ts'
import { Hosts } from '../nodes/hosts.ts'
import type { RemoteNode } from '../nodes/remote-node.ts'
import { Application } from './application.ts'
import { SparkError } from './connect/errors.ts'
import { CoreShare } from './core-share.ts'
import { ADVICE, cureFor, endedAtOnce, whatFailed } from './cures.ts'
import { nodeFor, openWayBack } from './open-way-back.ts'
import type { SparkOptions } from './options.ts'
import { Retries } from './retries.ts'
import type { Room } from './room.ts'
import { reserveOf, type Server } from './server.ts'
import { SlotQueries, type SlotQuery } from './slot-queries.ts'

const WAIT_MS = 60_000
const LOOK_MS = 1000
/** Looks between two questions how much room there is: often at first, when executors are still being started. */
const ROOM_LOOKS = { first: 1, later: 10, until: 20 } as const
/** Looks between two questions who else is there, as long as there is nobody. */
const ALONE_LOOKS = 2
/** After so many looks, those who come later are a surprise. */
const SETTLED_LOOKS = 5
/** After so long without a place for a slot, the user is told. */
const WAITING_MS = 10_000
/** Slots that are just being started are waited for, so that they can be told that nobody needs them. */
const STARTING_MS = 3000
const LEAVE_MS = 5000
/** The gRPC status of a server that is not there. */
const UNAVAILABLE = 14
const GONE_MS = 60_000
/** Spark replaces executors that were lost. Those that are still missing after this time may not come back. */
const SHRUNK_MS = 20_000

export interface SlotsWants {
  readonly options: SparkOptions
  readonly inLocal: boolean
  readonly workerNum: number
  /** The Spark that they are to be on. */
  readonly server: Promise<Server>
}

/** What there is once Spark has been reached. */
interface Opened {
  readonly application: Application
  readonly node: string
  readonly orders: SlotOrder
  readonly queries: SlotQueries
  readonly share: CoreShare
}

/** The slots of one engine on a Spark cluster: which are there, which are asked for, and the workers in them. */
export class Slots {
  readonly #options: SparkOptions
  readonly #inLocal: boolean
  readonly #workerNum: number
  readonly #events: EngineEvents
  readonly #hosts: Hosts
  readonly #opening: Promise<Server>
  readonly #retries = new Retries()
  /** Slots that have a host, by their number. */
  readonly #here = new Map<number, RemoteNode>()
  #application: Application | undefined
  #opened: Opened | undefined
  #room: Room | undefined
  #alive = true
  #stopped = false
  #stopping: Promise<void> | undefined
  #failed = false
  /** Since then no session could be opened. */
  #unheardSince: number | undefined
  #looks: NodeJS.Timeout | undefined
  #looked = 0
  #asking = false
  #smallerSince: number | undefined
  /** When it is being stopped: slots that may still call. */
  #starting = 0
  readonly #said = new Set<string>()

  constructor({ options, inLocal, workerNum, server }: SlotsWants, placement: Placement, events: EngineEvents) {
    this.#options = options
    this.#inLocal = inLocal
    this.#workerNum = workerNum
    this.#opening = server
    this.#events = events
    const { env = {} } = options
    const { elsewhere } = placement
    const placed = { ...placement, elsewhere: { ...elsewhere, env: { ...env, ...elsewhere.env } } }
    const link: EngineEvents['link'] = (worker) => {
      this.#retries.reset()
      events.link(worker)
    }
    this.#hosts = new Hosts(
      placed,
      { ...events, link },
      {
        share: (wanted, hosts) => hosts.map((host) => (this.#isWanted(host, wanted) && this.#isLatest(host) ? 1 : 0)),
        joined: (host, info) => this.#onJoined(host, info),
        equipped: () => {},
        broke: (host) => this.#onBroken(host),
        gone: (host, reason) => this.#onGone(host, reason),
        emptied: (host) => this.#releaseIfSpare(host),
      },
    )
  }

  get maxWorkers(): number {
    if (this.#room === undefined) return this.#inLocal ? this.#workerNum : 1
    return Math.max(1, this.#room.slots - reserveOf(this.#options))
  }

  get elastic(): boolean {
    // Spark says two as long as no executor has come, and they come one after the other.
    const early = !this.#inLocal && this.#looked < SETTLED_LOOKS && (this.#room?.slots ?? 0) <= 2
    return this.#room === undefined || this.#room.grows || early
  }

  async start(): Promise<void> {
    const [server] = await Promise.all([this.#opening, this.#hosts.prepare()])
    if (this.#stopped) return
    const node = nodeFor(server, this.#options)
    const application = new Application(server, node)
    this.#application = application
    this.keepAlive(this.#alive)
    void server.ended.then((how) => this.#onSparkGone(how))
    this.#room = await application.findRoom()
    this.#refuseTheImpossible()
    const orders = await openWayBack(this.#hosts, server, this.#options)
    if (this.#stopped) return
    const queries = new SlotQueries(application, {
      orders: () => JSON.stringify(orders),
      ended: (query, printed) => this.#onQueryEnded(query, printed),
      failed: (query, error) => this.#onQueryFailed(query, error),
    })
    const share = new CoreShare((question) => application.ask(question), {
      now: () => this.#cores(),
      changed: (reason) => this.#onLimit(reason),
      notice: (line) => this.#events.notice(`${line} (${application.name})`),
    })
    this.#opened = { application, node, orders, queries, share }
    this.#looks = setInterval(() => void this.#look(), LOOK_MS)
    if (!this.#alive) this.#looks.unref()
    this.#events.roomier()
    this.#review()
  }

  scale(workers: number): void {
    this.#hosts.scale(workers)
    this.#giveBack('fewer workers are wanted')
    this.#review()
  }

  async publish(bundle: CodeBundle): Promise<void> {
    await this.#hosts.publish(bundle)
  }

  keepAlive(alive: boolean): void {
    const back = alive && !this.#alive
    this.#alive = alive
    this.#hosts.keepAlive(alive)
    this.#application?.keepAlive(alive)
    alive ? this.#looks?.ref() : this.#looks?.unref()
    if (!back) return
    // Another run may have what the one before could not get.
    this.#retries.reset()
    this.#review()
  }

  /** Whoever asks for it waits for the same end. */
  stop(): Promise<void> {
    this.#stopped = true
    return (this.#stopping ??= this.#stop())
  }

  async #stop(): Promise<void> {
    clearInterval(this.#looks)
    const queries = this.#opened?.queries
    this.#starting = (queries?.running ?? 0) - this.#here.size
    // First, so that Spark starts nothing more in the places that become free.
    if (this.#waiting > 0) await this.#application?.interrupt()
    const leaving = Promise.all([...this.#here.values()].map((host) => host.leave(LEAVE_MS)))
    await until(() => this.#starting <= 0, STARTING_MS)
    await leaving
    // Spark has seen the last process end.
    await until(() => (queries?.all.size ?? 0) === 0, LEAVE_MS)
    await this.#hosts.stop()
    // A server that is gone has no view of ours; and one that does not answer is not waited for.
    if (this.#unheardSince === undefined)
      await Promise.race([this.#opened?.share.leave(), sleep(LEAVE_MS, undefined, { ref: false })])
    if (this.#application) await this.#application.end()
    else await (await this.#opening.catch(() => undefined))?.release(true)
  }

  #refuseTheImpossible(): void {
    const { slots, grows } = this.#room!
    const reserve = reserveOf(this.#options)
    if (grows || slots > reserve) return
    throw new ManyworldsError(
      'SPARK_IMPOSSIBLE',
      `Spark can run ${slots} tasks at once, and ${reserve} are reserved for queries: no worker can be placed. Give it more cores, or say spark.reserve: ${Math.max(0, slots - 1)}`,
    )
  }

  #onSparkGone(how: string): void {
    if (this.#stopped) return
    this.#fail(new ManyworldsError('SPARK_FAILED', `Spark has ended on this machine (${how.split('\n', 1)[0]})`))
  }

  #fail(error: Error): void {
    if (this.#failed || this.#stopped) return
    this.#failed = true
    this.#events.failed(error)
  }

  // ---- how many there may be

  #cores() {
    return {
      ...{ cores: this.#room!.slots, reserve: reserveOf(this.#options), idle: !this.#alive },
      taken: new Set([...this.#here.keys(), ...this.#opened!.queries.asked]).size,
      wanted: Math.min(this.#hosts.wanted, this.maxWorkers),
    }
  }

  /** Finds out how many slots there may be, and asks for those that are missing. */
  #review(): void {
    if (this.#stopped || this.#opened === undefined) return
    const began = Date.now()
    this.#opened.share.review().then(
      () => {
        this.#unheardSince = undefined
        this.#fill()
      },
      (error: Error) => this.#onUnheard(error, began),
    )
  }

  #onLimit(reason: string): void {
    if (this.#stopped) return
    this.#giveBack(reason)
    this.#hosts.share()
    this.#fill()
  }

  /** Nothing is known of the others. Those that are here go on; without any, the run would wait for ever. */
  #onUnheard(error: Error, since: number): void {
    if (this.#stopped) return
    this.#unheardSince ??= since
    if (this.#here.size === 0 && Date.now() - this.#unheardSince > GONE_MS) this.#fail(error)
  }

  // ---- slots

  #isWanted({ info }: RemoteNode, wanted = this.#hosts.wanted): boolean {
    const limit = this.#opened?.share.limit ?? 0
    return info?.slot !== undefined && info.slot < Math.min(wanted, this.maxWorkers, limit)
  }

  /** Whether no other has been started in its place. */
  #isLatest(host: RemoteNode): boolean {
    return this.#here.get(host.info!.slot!) === host
  }

  /** Asks for those that are wanted, and neither here nor asked for. */
  #fill(): void {
    if (this.#stopped || this.#failed || this.#opened === undefined || !this.#retries.due) return
    const { queries, share } = this.#opened
    const { asked } = queries
    const missing: number[] = []
    const most = Math.min(this.#hosts.wanted, this.maxWorkers, share.limit)
    for (let slot = 0; slot < most; slot++) if (!asked.has(slot) && !this.#here.has(slot)) missing.push(slot)
    queries.ask(missing, this.#room!.speculates)
  }

  #onJoined(host: RemoteNode, info: HostInfo): void {
    const { slot } = info
    const { queries } = this.#opened!
    host.name = slot === undefined ? info.host : `${info.host}/slot-${slot}`
    if (this.#stopped) this.#starting--
    if (slot === undefined || this.#stopped || !this.#isWanted(host)) {
      queries.sentAway(slot!)
      return void host.leave(0)
    }
    queries.called(slot)
    // Spark has started it a second time, because it believes the first one to be lost. It knows only of the second.
    const before = this.#here.get(slot)
    this.#here.set(slot, host)
    if (before) {
      before.giveBack('Spark has started another in its place')
      if (before.workers === 0) void before.leave(0)
    }
  }

  /** Those that are too many finish what they have; then Spark gets their place back. */
  #giveBack(reason: string): void {
    for (const host of this.#here.values()) if (!this.#isWanted(host)) host.giveBack(reason)
    for (const host of this.#here.values()) this.#releaseIfSpare(host)
  }

  /** A slot that is not wanted, and has no worker any more, ends; Spark gets its place back. */
  #releaseIfSpare(host: RemoteNode): void {
    const slot = host.info?.slot
    if (slot === undefined || host.workers > 0) return
    if (this.#here.get(slot) !== host || !this.#isWanted(host)) this.#release(host)
  }

  /** Sends a slot away: it ends as it should, and Spark does not start it again. */
  #release(host: RemoteNode): void {
    const slot = host.info!.slot!
    if (this.#here.get(slot) === host) {
      this.#here.delete(slot)
      this.#opened!.queries.sentAway(slot)
    }
    void host.leave(0)
  }

  #onBroken(host: RemoteNode): void {
    const text = `workers cannot be started on ${host.name}: ${host.broken}`
    const error = new ManyworldsError('WORKER_START_FAILED', text)
    const others = [...this.#here.values()].some(({ broken }) => broken === undefined)
    if (!others) return this.#fail(error)
    // Elsewhere it may be better, or here later.
    this.#release(host)
    this.#onNoWorker(error, text, Date.now())
  }

  #onGone(host: RemoteNode, reason: string): void {
    const slot = host.info?.slot
    if (slot === undefined || this.#here.get(slot) !== host) return
    this.#here.delete(slot)
    if (this.#stopped) return
    this.#events.notice(`${host.name} was lost (${reason}); its tasks go to others, and Spark starts it again`)
    if (this.#here.size === 0 && this.#retries.reason) return this.#fail(this.#retries.reason)
    // Unless Spark had given it up before this was noticed.
    this.#fill()
  }

  /** They have ended although nobody has sent them away. */
  #onQueryEnded({ slots, called, since }: SlotQuery, printed: string): void {
    if (this.#stopped || slots.size === 0) return
    // Slots that had called and lost this process for too long end as they should.
    if (called) return this.#retries.later()
    const text = endedAtOnce(this.#opened!.node, printed)
    this.#onNoWorker(new ManyworldsError('SPARK_FAILED', text), text, since)
  }

  #onQueryFailed({ asked, called, since }: SlotQuery, error: Error): void {
    if (this.#stopped) return
    const { causes = [], grpcCode } = error instanceof SparkError ? error : {}
    const cure = cureFor([error.message, ...causes].join('\n'))
    const text = cure?.text ?? whatFailed(error.message)
    const failure = new ManyworldsError(cure?.code ?? 'SPARK_FAILED', text, { cause: error })
    // The server of a query was called for a minute already; one without a session gets as long.
    if (grpcCode !== UNAVAILABLE || asked) this.#unheardSince = undefined
    else this.#unheardSince ??= since
    const gone = grpcCode === UNAVAILABLE && (asked || Date.now() - this.#unheardSince! > GONE_MS)
    const incurable = asked && !called && cure !== undefined
    if (this.#here.size === 0 && (gone || incurable)) return this.#fail(failure)
    if (asked) return this.#onNoWorker(failure, text, since)
    this.#say(`${text}; it is asked for again`)
    this.#retries.later()
  }

  /** Slots were asked for, and came to nothing. They are asked for again, but not for ever. */
  #onNoWorker(error: Error, text: string, askedAt: number): void {
    const last = this.#retries.failed(error, askedAt)
    if (last && this.#here.size === 0) return this.#fail(error)
    const others = this.#here.size > 0 ? `${counted(this.#here.size, 'slot')} go on, and ` : ''
    this.#say(`${text}; ${others}${last ? 'no more are asked for' : 'the missing ones are asked for again'}`)
  }

  /** Slots that Spark was asked for and that are not here. */
  get #waiting(): number {
    return [...(this.#opened?.queries.asked ?? [])].filter((slot) => !this.#here.has(slot)).length
  }

  #say(line: string): void {
    if (this.#said.has(line)) return
    this.#said.add(line)
    this.#events.notice(line)
  }

  // ---- looking after them

  async #look(): Promise<void> {
    const looks = ++this.#looked
    this.#missThoseWhoDoNotCall()
    if (looks % (this.#opened!.share.alone ? ALONE_LOOKS : 1) === 0) this.#review()
    else this.#fill()
    if (looks === SETTLED_LOOKS) this.#events.roomier()
    const often = looks < ROOM_LOOKS.until ? ROOM_LOOKS.first : ROOM_LOOKS.later
    if (looks % often !== 0 || this.#inLocal || !this.#alive || this.#asking) return
    this.#asking = true
    const room = await this.#application!.findRoom().catch(() => undefined)
    this.#asking = false
    if (room !== undefined && !this.#stopped) this.#onRoom(room)
  }

  #onRoom(room: Room): void {
    const before = this.#room!.slots
    if (room.slots >= before) this.#smallerSince = undefined
    else this.#smallerSince ??= Date.now()
    if (room.slots > before) {
      this.#room = room
      this.#retries.reset()
      this.#events.roomier()
      this.#review()
    } else if (this.#smallerSince !== undefined && Date.now() - this.#smallerSince > SHRUNK_MS) {
      this.#room = room
      this.#smallerSince = undefined
      // What is left must not be all taken: tasks may come from a query, which would wait for the workers that wait for it.
      this.#giveBack('Spark has lost executors, and needs room for queries')
    }
  }

  #missThoseWhoDoNotCall(): void {
    const { application, orders, queries } = this.#opened!
    for (const query of queries.all) {
      if (query.called) continue
      const waited = Date.now() - query.since
      if (waited > WAITING_MS && query.running === 0 && this.#here.size === 0)
        this.#say(
          `Spark has not started a worker yet: its executors are busy, or still being started (${application.name})`,
        )
      if (query.running === 0 || waited < (this.#options.waitMs ?? WAIT_MS) || this.#here.size > 0) continue
      const tried = orders.hosts.map((host) => showAddress({ host, port: orders.port })).join(', ')
      this.#fail(
        new ManyworldsError(
          'SPARK_UNREACHABLE',
          `Spark runs ${query.running} slots, and none of them has called this process at ${tried} within ${Math.round(waited / 1000)} s: ${ADVICE}`,
        ),
      )
    }
  }
}

async function until(done: () => boolean, withinMs: number): Promise<void> {
  for (const end = Date.now() + withinMs; Date.now() < end && !done(); ) await sleep(25)
}
