import { randomBytes } from 'node:crypto'
import { availableParallelism, freemem, hostname, loadavg, totalmem } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { BlobFolder } from '../blob-folder.ts'
import { LockedFolder, removeLeftovers, temporaryFolder } from '../locked-folder.ts'
import { type Hello, Refusal } from '../network/handshake.ts'
import type { HostInfo, HostStatus } from '../network/host-messages.ts'
import { LEASE_MS } from '../network/limits.ts'
import type { Peer } from '../network/peer.ts'
import { thisMachine } from '../network/same-machine.ts'
import { ownPackage } from '../own-package.ts'
import { cacheFolder } from '../private-folder.ts'
import { counted } from '../text/quantities.ts'
import { BundleStore } from './bundle-store.ts'
import { DriverSession } from './driver-session.ts'
import { WORK_PREFIX, WorkFolder } from './work-folder.ts'
import { hostEnvironment } from './worker-environment.ts'

export interface HostOptions {
  /** The most workers, for all drivers together. Default: the machine's cores. */
  readonly workers?: number | undefined
  /** Labels that tasks may require. */
  readonly labels?: readonly string[] | undefined
  /** The most memory that a worker may use. */
  readonly workerMemoryMb?: number | undefined
  /** The most drivers at once. */
  readonly maxDrivers?: number | undefined
  /** Environment variables of this process that workers get. */
  readonly passEnv?: readonly string[] | undefined
  /** Where bundles are kept. */
  readonly cacheFolder?: string | undefined
  /** A folder shared with other hosts on this machine: blobs that one of them has need not be sent again. */
  readonly sharedBlobs?: string | undefined
  /** The folder whose packages workers may use in addition to what drivers send. Default: the current one. */
  readonly packagesFolder?: string | undefined
  readonly leaseMs?: number | undefined
  /** Its number, if it is a slot of an engine. */
  readonly slot?: number | undefined
  /** Called before the connection of a driver that is done is closed. */
  readonly beforeGoodbye?: (() => Promise<void>) | undefined
  readonly log: (line: string) => void
}

const DEFAULT_DRIVERS = 16
const MAX_ENDED = 1000
const BLOBS_PREFIX = 'host-'

/** The workers of one machine, for the drivers that call it or that it calls. */
export class NodeHost {
  readonly #options: HostOptions
  readonly #workers: number
  readonly #sessions = new Map<string, DriverSession>()
  /** Sessions whose workers are gone, by their id: their drivers may ask. */
  readonly #ended = new Set<string>()
  readonly #startedAt = Date.now()
  #bundles: BundleStore | undefined
  #workFolder: WorkFolder | undefined
  #blobs: BlobFolder | undefined
  #ownBlobs: LockedFolder | undefined
  #draining: string | undefined
  #served = false
  #quiet: (() => void)[] = []

  constructor(options: HostOptions) {
    this.#options = options
    this.#workers = options.workers ?? availableParallelism()
  }

  async prepare(): Promise<void> {
    removeLeftovers(temporaryFolder(), WORK_PREFIX)
    this.#workFolder = new WorkFolder()
    this.#blobs = await this.#openBlobs(this.#workFolder)
    this.#bundles = await this.#openBundles(this.#workFolder.path)
  }

  /** A configured folder must be usable. If the default one is not, code is kept only as long as this host lives. */
  async #openBundles(workFolder: string): Promise<BundleStore> {
    const { cacheFolder: named, log } = this.#options
    if (named !== undefined) return BundleStore.open(named)
    try {
      return await BundleStore.open(cacheFolder('bundles'))
    } catch (error) {
      log(`code from drivers cannot be kept for the next start: ${(error as Error).message}; see --cache-dir`)
      return BundleStore.open(join(workFolder, 'bundles'))
    }
  }

  async #openBlobs(workFolder: WorkFolder): Promise<BlobFolder> {
    const { sharedBlobs } = this.#options
    if (sharedBlobs === undefined) return new BlobFolder(await workFolder.newFolder('blobs-'))
    removeLeftovers(sharedBlobs, BLOBS_PREFIX)
    // Next to the other hosts' folders: shared blobs are hard links, which need the same file system.
    const own = new LockedFolder(join(sharedBlobs, `${BLOBS_PREFIX}${randomBytes(6).toString('hex')}`))
    this.#ownBlobs = own
    return new BlobFolder(own.path, sharedBlobs)
  }

  get info(): HostInfo {
    const machine = thisMachine()
    return {
      ...{
        host: hostname(),
        pid: process.pid,
        leaseMs: this.#options.leaseMs ?? LEASE_MS,
        version: ownPackage.version,
        node: process.version,
      },
      ...{ platform: `${process.platform}-${process.arch}`, cores: availableParallelism() },
      ...{ memoryMb: Math.round(totalmem() / 2 ** 20), workers: this.#workers },
      labels: [...(this.#options.labels ?? [])],
      ...(machine === undefined ? {} : { machine }),
      ...(this.#options.slot === undefined ? {} : { slot: this.#options.slot }),
    }
  }

  status(): HostStatus {
    const drivers = [...this.#sessions.values()].map((one) => ({
      ...{ driver: one.driver, connected: one.session.attached, wanted: one.wanted, workers: one.workers },
      ...{ tasks: one.tasks, seconds: Math.round((Date.now() - one.startedAt) / 1000) },
    }))
    return {
      ...{ type: 'status', info: this.info, upSeconds: Math.round((Date.now() - this.#startedAt) / 1000) },
      ...{ draining: this.#draining !== undefined, loadAverage: loadavg()[0]!, drivers },
      freeMemoryMb: Math.round(freemem() / 2 ** 20),
    }
  }

  /** Whether it has ever had a driver. */
  get served(): boolean {
    return this.#served
  }

  /** Admits or refuses a caller; for a continued session, returns how many of its messages have arrived. */
  admit({ role, session, fresh }: Hello): number {
    if (role === 'status') return 0
    if (role !== 'driver') throw new Refusal('ROLE', 'both ends are nodes; a node can only call a driver')
    const known = this.#sessions.get(session)
    if (!fresh) {
      if (this.#ended.has(session)) throw new Refusal('SESSION_ENDED', 'the driver was away for longer than its lease')
      if (known === undefined) throw new Refusal('SESSION_UNKNOWN', 'the node was restarted, or it is another one')
      if (known.session.over) throw new Refusal('BUSY', 'the workers of an earlier session are being ended')
      return known.session.letGo()
    }
    if (known !== undefined) throw new Refusal('MALFORMED', 'a session with that id already exists')
    if (this.#draining !== undefined) throw new Refusal('DRAINING', this.#draining)
    const most = this.#options.maxDrivers ?? DEFAULT_DRIVERS
    if (this.#sessions.size >= most)
      throw new Refusal(
        'BUSY',
        `this node serves ${counted(this.#sessions.size, 'driver')} already, and ${most} is its limit`,
      )
    return 0
  }

  accept(peer: Peer, hello: Hello): void {
    if (hello.role === 'status') {
      peer.send(Buffer.from(JSON.stringify(this.status())))
      peer.socket.close(1000)
      return
    }
    const session = this.#sessions.get(hello.session)
    if (session) session.attach(peer, hello.received)
    else this.open(hello.session, peer.address).attach(peer, 0)
  }

  /** A new session with a driver. */
  open(id: string, from: string): DriverSession {
    const { log, workerMemoryMb, passEnv, leaseMs = LEASE_MS } = this.#options
    const session: DriverSession = new DriverSession(id, {
      bundles: this.#bundles!,
      blobs: this.#blobs!,
      workFolder: this.#workFolder!,
      packagesFolder: resolve(this.#options.packagesFolder ?? '.'),
      env: hostEnvironment(passEnv),
      workerMemoryMb,
      leaseMs,
      grant: (wanted) => this.#grant(session, wanted),
      freed: () => this.#refill(session),
      came: () => log(`${session.driver} (${from}) has come`),
      log,
      dismissed: async () => await this.#options.beforeGoodbye?.(),
      ended: (reason) => {
        this.#sessions.delete(id)
        this.#remember(id)
        log(`${session.driver} (${from}) has left: ${reason}`)
        this.#refill(session)
        if (this.#sessions.size === 0) for (const quiet of this.#quiet.splice(0)) quiet()
      },
    })
    this.#served = true
    this.#sessions.set(id, session)
    session.say({ type: 'host', info: this.info })
    return session
  }

  #remember(id: string): void {
    this.#ended.add(id)
    for (const oldest of this.#ended) {
      if (this.#ended.size <= MAX_ENDED) return
      this.#ended.delete(oldest)
    }
  }

  /** Lets running tasks finish within this time, then ends everything. */
  async drain(reason: string, graceMs: number): Promise<void> {
    this.#draining = reason
    const sessions = [...this.#sessions.values()]
    for (const session of sessions) session.drain(reason)
    const end = Date.now() + graceMs
    while (sessions.some((session) => session.workers > 0) && Date.now() < end) await sleep(50)
    await this.close(reason)
  }

  async close(reason: string): Promise<void> {
    const gone = new Promise<void>((resolve) => this.#quiet.push(resolve))
    for (const session of this.#sessions.values()) void session.end(reason)
    if (this.#sessions.size > 0) await gone
    await this.removeWorkFolder()
  }

  async removeWorkFolder(): Promise<void> {
    await this.#ownBlobs?.remove()
    await this.#workFolder?.remove()
  }

  /** First come, first served; the rest goes to drivers that want more. */
  #grant(session: DriverSession, wanted: number): number {
    let others = 0
    for (const other of this.#sessions.values()) if (other !== session) others += other.workers
    const granted = Math.max(0, Math.min(wanted, this.#workers - others))
    if (granted < wanted) this.#askOthers(session, granted)
    return granted
  }

  /** Asks drivers to give back idle warm workers. Busy workers have to be waited for; the waiting driver is told so. */
  #askOthers(waiting: DriverSession, granted: number): void {
    const others = [...this.#sessions.values()].filter((other) => other !== waiting && other.workers > 0)
    for (const other of others) other.say({ type: 'others-wait' })
    if (granted > 0 || waiting.told || others.length === 0) return
    waiting.told = true
    const line = `all ${this.#workers} workers of this node are used by ${others.map(({ driver }) => driver).join(', ')}; waiting for one`
    waiting.say({ type: 'notice', line: line.slice(0, 1000) })
  }

  #refill(except: DriverSession): void {
    for (const other of this.#sessions.values()) if (other !== except && other.workers < other.wanted) other.fill()
  }
}
