import { setTimeout as sleep } from 'node:timers/promises'
import { ManyworldsError } from '../../errors.ts'
import type { SlotInstructions } from '../../host/slot-instructions.ts'
import { within } from '../../within.ts'
import type { BlobContent, CodeBundle, EngineEvents, Placement } from '../engine.ts'
import type { LoadedEngine } from '../lazy-engine.ts'
import { Hosts } from '../nodes/hosts.ts'
import type { RemoteNode } from '../nodes/remote-node.ts'
import { Application } from './application.ts'
import { CoreShare } from './core-share.ts'
import { nodeFor, openCallback } from './open-callback.ts'
import type { SparkOptions } from './options.ts'
import type { Server } from './server.ts'
import { SlotHosts } from './slot-hosts.ts'
import { SlotQueries } from './slot-queries.ts'
import { SlotRoom } from './slot-room.ts'
import { SlotTroubles } from './slot-troubles.ts'

const LOOK_MS = 1000
/** Checks between two queries for other drivers, as long as there is none. */
const ALONE_LOOKS = 2
/** How long to wait for starting slots at the end, to tell them that they are not needed. */
const STARTING_MS = 3000
const LEAVE_MS = 5000

export interface SlotsWants {
  readonly options: SparkOptions
  readonly inLocal: boolean
  readonly workerNum: number
  /** The Spark to use. */
  readonly server: Promise<Server>
}

/** The state after Spark is connected. */
interface Opened {
  readonly application: Application
  readonly orders: SlotInstructions
  readonly queries: SlotQueries
  readonly share: CoreShare
}

/**
 * The slots of one engine on a Spark cluster: how many are allowed, requested and connected. Spark starts and restarts slots;
 * this class requests the missing ones.
 */
export class Slots implements LoadedEngine {
  readonly #options: SparkOptions
  readonly #events: EngineEvents
  readonly #opening: Promise<Server>
  readonly #room: SlotRoom
  readonly #troubles: SlotTroubles
  readonly #hosts: Hosts
  readonly #here: SlotHosts
  #application: Application | undefined
  #opened: Opened | undefined
  #alive = true
  #stopped = false
  #stopping: Promise<void> | undefined
  #looks: NodeJS.Timeout | undefined
  #looked = 0
  /** During stop: slots that may still call. */
  #starting = 0

  constructor({ options, inLocal, workerNum, server }: SlotsWants, placement: Placement, events: EngineEvents) {
    this.#options = options
    this.#opening = server
    this.#events = events
    this.#room = new SlotRoom(options, inLocal, workerNum, {
      grew: () => {
        this.#troubles.retries.reset()
        events.capacityGrew()
        this.#review()
      },
      settled: () => events.capacityGrew(),
      // Leave cores free: tasks may come from a query, which would deadlock with the workers that wait for it.
      shrank: () => this.#here.giveBack('Spark has lost executors, and needs room for queries'),
    })
    this.#here = new SlotHosts({
      most: () => this.#most,
      called: (slot) => this.#opened!.queries.called(slot),
      sentAway: (slot) => this.#opened!.queries.sentAway(slot),
    })
    this.#troubles = new SlotTroubles(options.waitMs, {
      here: () => this.#here.size,
      notice: (line) => events.notice(line),
      failed: (error) => events.failed(error),
    })
    const link: EngineEvents['link'] = (worker) => {
      this.#troubles.retries.reset()
      events.link(worker)
    }
    this.#hosts = new Hosts(
      withOwnVariables(placement, options),
      { ...events, link },
      {
        share: (_wanted, hosts) => hosts.map((host) => (this.#here.isUsed(host) ? 1 : 0)),
        joined: (host, info) => {
          if (this.#stopped) this.#starting--
          this.#here.join(host, info, this.#stopped)
        },
        equipped: () => {},
        broke: (host) => this.#onBroken(host),
        gone: (host, reason) => this.#onGone(host, reason),
        emptied: (host) => this.#here.releaseIfSpare(host),
      },
    )
  }

  get maxWorkers(): number {
    return this.#room.maxWorkers
  }

  get elastic(): boolean {
    return this.#room.elastic
  }

  async start(): Promise<void> {
    const [server] = await Promise.all([this.#opening, this.#hosts.prepare()])
    if (this.#stopped) return
    const node = nodeFor(server, this.#options)
    const application = new Application(server, node)
    this.#application = application
    this.keepAlive(this.#alive)
    void server.ended.then((how) => this.#onSparkGone(how))
    await this.#room.find(application)
    const orders = await openCallback(this.#hosts, server, this.#options)
    if (this.#stopped) return
    const queries = new SlotQueries(application, {
      orders: () => JSON.stringify(orders),
      ended: (query, printed) => this.#troubles.queryEnded(query, printed, node),
      failed: (query, error) => this.#troubles.queryFailed(query, error),
    })
    const share = new CoreShare((question) => application.ask(question), {
      now: () => this.#cores(),
      changed: (reason) => this.#onLimit(reason),
      notice: (line) => this.#events.notice(`${line} (${application.name})`),
    })
    this.#opened = { application, orders, queries, share }
    this.#looks = setInterval(() => this.#look(), LOOK_MS)
    if (!this.#alive) this.#looks.unref()
    this.#events.capacityGrew()
    this.#review()
  }

  scale(workers: number): void {
    this.#hosts.scale(workers)
    this.#here.giveBack('fewer workers are wanted')
    this.#review()
  }

  async publish(bundle: CodeBundle): Promise<void> {
    await this.#hosts.publish(bundle)
  }

  async putBlob(blob: BlobContent): Promise<void> {
    await this.#hosts.putBlob(blob)
  }

  dropBlob(sha256: string): void {
    this.#hosts.dropBlob(sha256)
  }

  keepAlive(alive: boolean): void {
    const back = alive && !this.#alive
    this.#alive = alive
    this.#hosts.keepAlive(alive)
    this.#application?.keepAlive(alive)
    alive ? this.#looks?.ref() : this.#looks?.unref()
    if (!back) return
    // The next run may succeed where the previous one failed.
    this.#troubles.retries.reset()
    this.#review()
  }

  /** All callers wait for the same end. */
  stop(): Promise<void> {
    this.#stopped = true
    this.#troubles.stop()
    return (this.#stopping ??= this.#stop())
  }

  async #stop(): Promise<void> {
    clearInterval(this.#looks)
    // The retries of an idle engine do not keep the process alive, and the end may have to wait for them.
    const awake = setInterval(() => {}, LEAVE_MS)
    try {
      this.#hosts.keepAlive(true)
      this.#application?.keepAlive(true)
      await this.#leave()
      if (this.#application) await this.#application.end()
      else await (await this.#opening.catch(() => undefined))?.release(true)
    } finally {
      clearInterval(awake)
    }
  }

  /** Ends the slots. The server may be gone: every wait for it has a limit, and one that was reached is the last. */
  async #leave(): Promise<void> {
    const { queries, share } = this.#opened ?? {}
    this.#starting = (queries?.running ?? 0) - this.#here.size
    // First, so that Spark starts nothing more on cores that become free.
    const interrupting = this.#waiting > 0 ? this.#application?.interrupt() : undefined
    const answers = await within(LEAVE_MS, interrupting ?? Promise.resolve())
    const leaving = Promise.all(this.#here.all.map((host) => host.leave(LEAVE_MS)))
    if (answers) await until(() => this.#starting <= 0, STARTING_MS)
    await leaving
    if (answers)
      await Promise.all([
        // Spark has seen the last process end.
        until(() => (queries?.all.size ?? 0) === 0, LEAVE_MS),
        // A server that is gone has no post of ours.
        this.#troubles.heard ? within(LEAVE_MS, share?.leave() ?? Promise.resolve()) : undefined,
      ])
    await this.#hosts.stop()
  }

  // ---- how many slots

  /** The minimum of what is wanted, what fits, and what other drivers leave. */
  get #most(): number {
    return Math.min(this.#hosts.wanted, this.#room.maxWorkers, this.#opened?.share.limit ?? 0)
  }

  /** Requested slots that are not connected. */
  get #waiting(): number {
    return [...(this.#opened?.queries.asked ?? [])].filter((slot) => !this.#here.has(slot)).length
  }

  #cores() {
    return {
      ...{ cores: this.#room.cores, reserve: this.#room.reserve, idle: !this.#alive },
      taken: new Set([...this.#here.numbers, ...this.#opened!.queries.asked]).size,
      wanted: Math.min(this.#hosts.wanted, this.#room.maxWorkers),
    }
  }

  /** Updates the limit and requests missing slots. */
  #review(): void {
    if (this.#stopped || this.#opened === undefined) return
    const began = Date.now()
    this.#opened.share.review().then(
      () => {
        this.#troubles.hears()
        this.#fill()
      },
      (error: Error) => this.#troubles.unheard(error, began),
    )
  }

  #onLimit(reason: string): void {
    if (this.#stopped) return
    this.#here.giveBack(reason)
    this.#hosts.share()
    this.#fill()
  }

  /** Requests wanted slots that are neither connected nor requested. */
  #fill(): void {
    if (this.#opened === undefined || this.#troubles.over || !this.#troubles.retries.due) return
    const { queries } = this.#opened
    const { asked } = queries
    const missing: number[] = []
    for (let slot = 0; slot < this.#most; slot++) if (!asked.has(slot) && !this.#here.has(slot)) missing.push(slot)
    queries.ask(missing, this.#room.speculates)
  }

  #look(): void {
    const { application, orders, queries, share } = this.#opened!
    this.#troubles.missSilent(queries.all, orders, application.name)
    if (++this.#looked % (share.alone ? ALONE_LOOKS : 1) === 0) this.#review()
    else this.#fill()
    void this.#room.look(application, () => this.#alive && !this.#stopped)
  }

  // ---- the life of slots

  #onBroken(host: RemoteNode): void {
    const text = `workers cannot be started on ${host.name}: ${host.broken}`
    const error = new ManyworldsError('WORKER_START_FAILED', text)
    const others = this.#here.all.some(({ broken }) => broken === undefined)
    if (!others) return this.#troubles.fail(error)
    // It may work on another executor, or here later.
    this.#here.release(host)
    this.#troubles.noWorker(error, text, Date.now())
  }

  #onGone(host: RemoteNode, reason: string): void {
    if (!this.#here.forget(host) || this.#stopped) return
    this.#troubles.lost(`${host.name} was lost (${reason}); its tasks go to others, and Spark starts it again`)
    // Unless Spark gave it up before this was noticed.
    this.#fill()
  }

  #onSparkGone(how: string): void {
    this.#troubles.fail(
      new ManyworldsError('SPARK_FAILED', `Spark has ended on this machine (${how.split('\n', 1)[0]})`),
    )
  }
}

/** Workers get the engine's environment variables; the run's own override them. */
function withOwnVariables(placement: Placement, { env = {} }: SparkOptions): Placement {
  const { remote } = placement
  return { ...placement, remote: { ...remote, env: { ...env, ...remote.env } } }
}

async function until(done: () => boolean, withinMs: number): Promise<void> {
  for (const end = Date.now() + withinMs; Date.now() < end && !done(); ) await sleep(25)
}
