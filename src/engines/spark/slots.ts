import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { ManyworldsError } from '../../errors.ts'
import type { SlotOrder } from '../../host/slot-order.ts'
import { showAddress } from '../../network/address.ts'
import type { HostInfo } from '../../network/host-messages.ts'
import type { CodeBundle, EngineEvents, Placement } from '../engine.ts'
import { Hosts } from '../nodes/hosts.ts'
import type { RemoteNode } from '../nodes/remote-node.ts'
import { Application } from './application.ts'
import { SparkError } from './connect/errors.ts'
import { parseRemote } from './connect/remote.ts'
import { ADVICE, cureFor, whatFailed } from './cures.ts'
import { isNodeBinary } from './launcher.ts'
import type { SparkOptions } from './options.ts'
import { type Pems, readOwnTls } from './remote.ts'
import type { Room } from './room.ts'
import { reserveOf, type Server } from './server.ts'
import { findWayBack, type WayBack } from './way-back.ts'

const WAIT_MS = 60_000
const LOOK_MS = 1000
/** Looks between two questions how much room there is: often at first, when executors are still being started. */
const ROOM_LOOKS = { first: 1, later: 10, until: 20 } as const
/** After so many looks, those who come later are a surprise. */
const SETTLED_LOOKS = 5
/** After so long without a place for a slot, the user is told. */
const WAITING_MS = 10_000
/** Waits before slots are asked for again that could not be had, doubled each time. */
const RETRY_MS = { first: 500, longest: 30_000 } as const
/** Operations in a row that end without a slot that has called. */
const MOST_FAILURES = 3
/** Slots that are just being started are waited for, so that they can be told that nobody needs them. */
const STARTING_MS = 3000
const LEAVE_MS = 5000
/** Rows of a query, each with the program in it. */
const MOST_AT_ONCE = 500
/** The gRPC status of a server that is not there. */
const UNAVAILABLE = 14
const GONE_MS = 60_000
/** Spark replaces executors that were lost. Those that are still missing after this time may not come back. */
const SHRUNK_MS = 20_000

/** One query: its rows are slots. */
interface Operation {
  /** Those that have not been sent away. */
  readonly slots: Set<number>
  readonly since: number
  /** There is a session for it. */
  asked: boolean
  /** One of its slots has called. */
  called: boolean
  /** Tasks that Spark runs for it, as far as it says. */
  running: number
}

export interface SlotsWants {
  readonly options: SparkOptions
  readonly inLocal: boolean
  readonly workerNum: number
  /** The Spark that they are to be on. */
  readonly server: Promise<Server>
}

/** Those of this process. */
const running = new Set<Slots>()

/** The slots of one engine on a Spark cluster: which are there, which are asked for, and the workers in them. */
export class Slots {
  readonly #options: SparkOptions
  readonly #inLocal: boolean
  readonly #workerNum: number
  readonly #events: EngineEvents
  readonly #hosts: Hosts
  readonly #token = randomBytes(24).toString('hex')
  /** Slots that have a host, by their number. */
  readonly #here = new Map<number, RemoteNode>()
  readonly #operations = new Set<Operation>()
  readonly #opening: Promise<Server>
  #server: Server | undefined
  #application: Application | undefined
  #wayBack: WayBack | undefined
  #port = 0
  #tls: Pems | undefined
  #room: Room | undefined
  #alive = true
  #stopped = false
  #stopping: Promise<void> | undefined
  #failed = false
  #failures = 0
  /** Since then no session could be opened. */
  #unheardSince: number | undefined
  #retryAt = 0
  #looks: NodeJS.Timeout | undefined
  #looked = 0
  #asking = false
  /** Others of this process have its places, until it has something to do again. */
  #lent = false
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
    this.#hosts = new Hosts(placed, events, {
      share: (wanted, hosts) => hosts.map((host) => (this.#isWanted(host, wanted) && this.#isLatest(host) ? 1 : 0)),
      joined: (host, info) => this.#onJoined(host, info),
      equipped: () => {},
      broke: (host) => this.#onBroken(host),
      gone: (host, reason) => this.#onGone(host, reason),
      emptied: (host) => this.#releaseIfSpare(host),
    })
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
    const { advertiseHost, nodeBinary = 'node' } = this.#options
    this.#tls = readOwnTls(this.#options.tls)
    const [server] = await Promise.all([this.#opening, this.#hosts.prepare()])
    if (this.#stopped) return
    this.#server = server
    const application = new Application(server, this.#beside() === undefined ? this.#ownNode() : nodeBinary)
    this.#application = application
    this.keepAlive(this.#alive)
    void server.ended.then((how) => this.#onSparkGone(how))
    this.#room = await application.findRoom()
    this.#refuseTheImpossible()
    this.#wayBack = await findWayBack(this.#beside(), advertiseHost)
    await this.#listen()
    if (this.#stopped) return
    running.add(this)
    this.#looks = setInterval(() => void this.#look(), LOOK_MS)
    if (!this.#alive) this.#looks.unref()
    this.#events.roomier()
    this.#fill()
  }

  scale(workers: number): void {
    this.#hosts.scale(workers)
    this.#giveBack('fewer workers are wanted')
    this.#fill()
  }

  async publish(bundle: CodeBundle): Promise<void> {
    await this.#hosts.publish(bundle)
  }

  keepAlive(alive: boolean): void {
    this.#alive = alive
    const back = alive && this.#lent
    if (back) this.#lent = false
    this.#hosts.keepAlive(alive)
    this.#application?.keepAlive(alive)
    alive ? this.#looks?.ref() : this.#looks?.unref()
    if (back) this.#fill()
  }

  /** Whoever asks for it waits for the same end. */
  stop(): Promise<void> {
    this.#stopped = true
    return (this.#stopping ??= this.#stop())
  }

  async #stop(): Promise<void> {
    running.delete(this)
    clearInterval(this.#looks)
    this.#starting = this.#countStarting()
    // First, so that Spark starts nothing more in the places that become free.
    if (this.#countWaiting() > 0) await this.#application?.interrupt()
    const leaving = Promise.all([...this.#here.values()].map((host) => host.leave(LEAVE_MS)))
    await until(() => this.#starting <= 0, STARTING_MS)
    await leaving
    // Spark has seen the last process end.
    await until(() => this.#operations.size === 0, LEAVE_MS)
    await this.#hosts.stop()
    if (this.#application) await this.#application.end()
    else await (await this.#opening.catch(() => undefined))?.release(true)
  }

  // ---- the way to Spark and back

  /** Where executors are here, they can use what this process runs on; what is on the PATH may be older. */
  #ownNode(): string {
    const { nodeBinary = process.execPath } = this.#options
    return isNodeBinary(nodeBinary) ? nodeBinary : 'node'
  }

  /** What this process can call that is beside the executors; undefined if they are threads of a process here. */
  #beside(): { host: string; port: number } | undefined {
    const { master = '', remote } = this.#server!
    if (/^local\b/.test(master)) return undefined
    const [, host, port] = /^spark:\/\/([^:,]+):(\d+)/.exec(master) ?? []
    return host === undefined ? parseRemote(remote) : { host, port: Number(port) }
  }

  async #listen(): Promise<void> {
    const { port = 0 } = this.#options
    const { bind } = this.#wayBack!
    const own = this.#tls && { cert: this.#tls.cert!, key: this.#tls.key! }
    try {
      // Slots that are sent away say so through Spark; others who call are none of the user's business.
      this.#port = await this.#hosts.listen({ host: bind, port, token: this.#token, tls: own, refused: () => {} })
    } catch (cause) {
      const { code, message } = cause as NodeJS.ErrnoException
      const why = code === 'EADDRINUSE' ? 'something else listens there' : message
      throw new ManyworldsError(
        'ENGINE_FAILED',
        `spark.port: cannot listen on ${showAddress({ host: bind, port })}: ${why}`,
        { cause },
      )
    }
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

  // ---- slots

  #isWanted({ info }: RemoteNode, wanted = this.#hosts.wanted): boolean {
    return !this.#lent && info?.slot !== undefined && info.slot < Math.min(wanted, this.maxWorkers)
  }

  /** Whether no other has been started in its place. */
  #isLatest(host: RemoteNode): boolean {
    return this.#here.get(host.info!.slot!) === host
  }

  /** Asks for those that are wanted, and neither here nor asked for. */
  #fill(): void {
    if (this.#stopped || this.#failed || this.#lent || this.#port === 0 || Date.now() < this.#retryAt) return
    const asked = new Set([...this.#operations].flatMap(({ slots }) => [...slots]))
    const missing: number[] = []
    const most = Math.min(this.#hosts.wanted, this.maxWorkers)
    for (let slot = 0; slot < most; slot++) if (!asked.has(slot) && !this.#here.has(slot)) missing.push(slot)
    if (missing.length === 0) return
    // A copy of a slot would be one too many. Of a query with one row, Spark makes none.
    const atOnce = this.#room!.speculates ? 1 : MOST_AT_ONCE
    for (let from = 0; from < missing.length; from += atOnce) void this.#run(missing.slice(from, from + atOnce))
  }

  async #run(slots: readonly number[]): Promise<void> {
    const operation: Operation = { slots: new Set(slots), since: Date.now(), asked: false, called: false, running: 0 }
    this.#operations.add(operation)
    try {
      await this.#application!.prepare()
      operation.asked = true
      await this.#application!.run(slots, JSON.stringify(this.#orders()), (running) => {
        operation.running = running
      })
      this.#operations.delete(operation)
      // If they have ended although nobody has sent them away, they had lost us for too long.
      if (operation.slots.size > 0) this.#retryLater()
    } catch (error) {
      this.#operations.delete(operation)
      this.#onOperationFailed(operation, error as Error)
    }
  }

  #orders(): SlotOrder {
    const orders = { hosts: this.#wayBack!.hosts, port: this.#port, token: this.#token }
    if (this.#tls === undefined) return orders
    const { ca, cert, serverName } = this.#tls
    return { ...orders, tls: { ca: ca ?? cert!, ...(serverName === undefined ? {} : { serverName }) } }
  }

  #onJoined(host: RemoteNode, info: HostInfo): void {
    const { slot } = info
    host.name = slot === undefined ? info.host : `${info.host}/slot-${slot}`
    if (this.#stopped) this.#starting--
    if (slot === undefined || this.#stopped || !this.#isWanted(host)) {
      // It may be wanted again before the others of its query have ended.
      for (const { slots } of this.#operations) slots.delete(slot!)
      return void host.leave(0)
    }
    for (const operation of this.#operations) if (operation.slots.has(slot)) operation.called = true
    this.#failures = 0
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
      for (const operation of this.#operations) operation.slots.delete(slot)
    }
    void host.leave(0)
  }

  #onBroken(host: RemoteNode): void {
    const text = `workers cannot be started on ${host.name}: ${host.broken}`
    const others = [...this.#here.values()].some(({ broken }) => broken === undefined)
    if (!others) return this.#fail(new ManyworldsError('WORKER_START_FAILED', text))
    this.#say(`${text}; another is asked for`)
    // Elsewhere it may be better, or here later.
    this.#release(host)
    this.#failures++
    this.#retryLater()
  }

  #onGone(host: RemoteNode, reason: string): void {
    const slot = host.info?.slot
    if (slot === undefined || this.#here.get(slot) !== host) return
    this.#here.delete(slot)
    if (this.#stopped) return
    this.#events.notice(`${host.name} was lost (${reason}); its tasks go to others, and Spark starts it again`)
    // Unless Spark had given it up before this was noticed.
    this.#fill()
  }

  #onOperationFailed({ asked, called, since }: Operation, error: Error): void {
    if (this.#stopped) return
    const { causes = [], grpcCode } = error instanceof SparkError ? error : {}
    const words = [error.message, ...causes].join('\n')
    const cure = cureFor(words)
    const text = cure?.text ?? whatFailed(error.message)
    // The server of a query was called for a minute already; one without a session gets as long.
    if (grpcCode !== UNAVAILABLE || asked) this.#unheardSince = undefined
    else this.#unheardSince ??= since
    const gone = grpcCode === UNAVAILABLE && (asked || Date.now() - this.#unheardSince! > GONE_MS)
    if (!called) this.#failures++
    const hopeless = asked && !called && (cure !== undefined || this.#failures >= MOST_FAILURES)
    if (this.#here.size === 0 && (gone || hopeless))
      return this.#fail(new ManyworldsError(cure?.code ?? 'SPARK_FAILED', text, { cause: error }))
    this.#say(
      `${text}; ${this.#here.size > 0 ? `${this.#here.size} workers go on, and more are` : 'it is'} asked for again`,
    )
    this.#retryLater()
  }

  #retryLater(): void {
    // The next look after that will do it.
    this.#retryAt = Date.now() + Math.min(RETRY_MS.longest, RETRY_MS.first * 2 ** this.#failures)
  }

  /** Slots that Spark was asked for and that are not here. */
  #countWaiting(): number {
    let waiting = 0
    for (const { slots } of this.#operations) for (const slot of slots) if (!this.#here.has(slot)) waiting++
    return waiting
  }

  /** Slots that Spark has started and that have not called yet. */
  #countStarting(): number {
    let running = 0
    for (const operation of this.#operations) running += operation.running
    return running - this.#here.size
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
    this.#fill()
    if (this.#alive && this.#countWaiting() > 0) this.#borrow()
    if (looks === SETTLED_LOOKS) this.#events.roomier()
    const often = looks < ROOM_LOOKS.until ? ROOM_LOOKS.first : ROOM_LOOKS.later
    if (looks % often !== 0 || this.#inLocal || !this.#alive || this.#asking) return
    this.#asking = true
    const room = await this.#application!.findRoom().catch(() => undefined)
    this.#asking = false
    if (room !== undefined && !this.#stopped) this.#onRoom(room)
  }

  /** Another engine of this process on the same Spark may keep workers warm for which it has no work. */
  #borrow(): void {
    for (const other of running) {
      if (other === this || other.#alive || other.#lent || other.#server?.remote !== this.#server?.remote) continue
      other.#lent = true
      other.#giveBack('another run needs its place')
    }
  }

  #onRoom(room: Room): void {
    const before = this.#room!.slots
    if (room.slots >= before) this.#smallerSince = undefined
    else this.#smallerSince ??= Date.now()
    if (room.slots > before) {
      this.#room = room
      this.#events.roomier()
      this.#fill()
    } else if (this.#smallerSince !== undefined && Date.now() - this.#smallerSince > SHRUNK_MS) {
      this.#room = room
      this.#smallerSince = undefined
      // What is left must not be all taken: tasks may come from a query, which would wait for the workers that wait for it.
      this.#giveBack('Spark has lost executors, and needs room for queries')
    }
  }

  #missThoseWhoDoNotCall(): void {
    for (const operation of this.#operations) {
      if (operation.called) continue
      const waited = Date.now() - operation.since
      if (waited > WAITING_MS && operation.running === 0 && this.#here.size === 0)
        this.#say(
          `Spark has not started a worker yet: its executors are busy, or still being started (${this.#application!.name})`,
        )
      if (operation.running === 0 || waited < (this.#options.waitMs ?? WAIT_MS) || this.#here.size > 0) continue
      const tried = this.#wayBack!.hosts.map((host) => showAddress({ host, port: this.#port })).join(', ')
      this.#fail(
        new ManyworldsError(
          'SPARK_UNREACHABLE',
          `Spark runs ${operation.running} slots, and none of them has called this process at ${tried} within ${Math.round(waited / 1000)} s: ${ADVICE}`,
        ),
      )
    }
  }
}

async function until(done: () => boolean, withinMs: number): Promise<void> {
  for (const end = Date.now() + withinMs; Date.now() < end && !done(); ) await sleep(25)
}
