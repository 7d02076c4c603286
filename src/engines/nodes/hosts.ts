import { hostname } from 'node:os'
import { makeRuntime } from '../../bundle/runtime.ts'
import { type Gate, openGate, type ServerTls } from '../../network/gate.ts'
import { type Hello, Refusal } from '../../network/handshake.ts'
import type { HostInfo } from '../../network/host-messages.ts'
import { BEAT_MS } from '../../network/limits.ts'
import { thisMachine } from '../../network/same-machine.ts'
import { withoutKnownSecrets } from '../../redaction/unattributed.ts'
import { escapeControls } from '../../text/escape-controls.ts'
import type { Reason } from '../../text/reason.ts'
import type { BlobContent, CodeBundle, EngineEvents, Placement } from '../engine.ts'
import { linesOf } from '../worker-output.ts'
import { RemoteNode } from './remote-node.ts'

/** How long to wait for the end of a host's workers. */
const LEAVE_MS = 5000
const MAX_JOINED = 10_000

/** What an engine decides about its hosts. */
export interface HostsPolicy {
  /** How many of the wanted workers each host should have. */
  share(wanted: number, hosts: readonly RemoteNode[]): readonly number[]
  /** A host has connected and introduced itself. Its name is still its address. Throws if it is not wanted. */
  joined(host: RemoteNode, info: HostInfo): void
  /** A host has its code and may run workers. */
  equipped(host: RemoteNode): void
  /** A host cannot be used: `broken` says why. */
  broke(host: RemoteNode): void
  gone(host: RemoteNode, reason: Reason): void
  /** The last worker of a host has ended. */
  emptied?(host: RemoteNode): void
}

export interface HostsGate {
  readonly host: string
  readonly port: number
  readonly token: string
  readonly tls: ServerTls | undefined
  /** Called with the reason when a caller is refused. */
  refused(line: string): void
}

/** The hosts of one engine: ships their code and decides how many workers each has. */
export class Hosts {
  readonly #placement: Placement
  readonly #events: EngineEvents
  readonly #policy: HostsPolicy
  readonly #all = new Set<RemoteNode>()
  readonly #bundles = new Map<string, CodeBundle>()
  readonly #blobs = new Map<string, BlobContent>()
  /** Blobs on their way to a machine. */
  readonly #underWay = new Map<string, Promise<void>>()
  /** Hosts on which other drivers wait for workers. */
  readonly #waitedFor = new Set<RemoteNode>()
  readonly #beats: NodeJS.Timeout
  #runtime: CodeBundle | undefined
  #gate: Gate | undefined
  #alive = true
  #stopped = false
  #wanted: number

  constructor(placement: Placement, events: EngineEvents, policy: HostsPolicy) {
    this.#placement = placement
    this.#events = events
    this.#policy = policy
    this.#wanted = placement.workers
    this.#beats = setInterval(() => {
      // Count checks instead of time: a driver that was busy for a minute has heard no host, but none is lost.
      for (const host of this.#all) host.beat()
    }, BEAT_MS)
  }

  get all(): readonly RemoteNode[] {
    return [...this.#all]
  }

  get wanted(): number {
    return this.#wanted
  }

  /** How many workers fit on the usable hosts. */
  get capacity(): number {
    let sum = 0
    for (const { capacity } of this.#all) sum += capacity
    return sum
  }

  /** Builds the workers' program. */
  async prepare(): Promise<void> {
    this.#runtime = await makeRuntime(this.#placement.workerEntry)
    this.#bundles.set(this.#runtime.sha256, this.#runtime)
  }

  /** Listens for hosts. Resolves with the port. */
  async listen({ host, port, token, tls, refused }: HostsGate): Promise<number> {
    const gate = await openGate({
      ...{ host, port, token, tls, maxConnections: MAX_JOINED },
      admit: (hello) => this.#admit(hello),
      accept: (peer, hello) => {
        const known = this.#bySession(hello.session)
        if (known) known.attach(peer, hello.received)
        else this.add(peer.address, hello.session).attach(peer, 0)
      },
      refused,
    })
    this.#gate = gate
    gate.keepAlive(this.#alive)
    // The engine may have been stopped meanwhile.
    if (this.#stopped) gate.close()
    return gate.port
  }

  /** A host that is being called, or that has called; then its session already has an id. */
  add(name: string, sessionId?: string): RemoteNode {
    const events = this.#events
    const host = new RemoteNode(
      name,
      {
        here: (one, info) => {
          if (sessionId !== undefined) this.#policy.joined(one, info)
          if (!one.session.over) void this.#equip(one)
        },
        link: (link) => events.link(link),
        retire: (link, reason) => events.retire(link, reason),
        changed: (one) => {
          if (one.broken !== undefined) this.#policy.broke(one)
          this.share()
        },
        notice: (line) => events.notice(line),
        othersWait: (one) => {
          this.#waitedFor.add(one)
          this.#giveBack()
        },
        output: (worker, lines) =>
          void process.stderr.write(escapeControls(linesOf(worker, withoutKnownSecrets(lines)))),
        emptied: (one) => this.#policy.emptied?.(one),
        gone: (one, reason) => {
          this.#all.delete(one)
          this.#waitedFor.delete(one)
          this.share()
          if (!this.#stopped) this.#policy.gone(one, reason)
        },
      },
      sessionId,
    )
    host.keepAlive(this.#alive)
    this.#all.add(host)
    return host
  }

  scale(workers: number): void {
    this.#wanted = workers
    this.share()
  }

  share(): void {
    if (this.#stopped) return
    const hosts = this.all.filter(({ capacity }) => capacity > 0)
    const shares = this.#policy.share(this.#wanted, hosts)
    hosts.forEach((host, index) => {
      host.want(shares[index]!)
    })
  }

  async publish(bundle: CodeBundle): Promise<void> {
    this.#bundles.set(bundle.sha256, bundle)
    // A host that refuses it counts as lost; the others go on. Hosts that join later get it before they are used.
    const usable = this.all.filter((host) => host.usable)
    await Promise.all(usable.map((host) => host.publish(bundle).catch((error: Error) => unfit(host, error))))
  }

  /** Resolves when each usable host has it or has refused it; workers of the latter get it over their links. */
  async putBlob(blob: BlobContent): Promise<void> {
    this.#blobs.set(blob.sha256, blob)
    await Promise.all(this.all.filter((host) => host.usable).map((host) => this.#bring(host, blob)))
  }

  dropBlob(sha256: string): void {
    this.#blobs.delete(sha256)
    for (const host of this.#all) host.blobs.drop(sha256)
  }

  async #bring(host: RemoteNode, blob: BlobContent): Promise<void> {
    // Hosts on one machine may share files: then the others need not be sent what the first has.
    const where = `${host.info!.host} ${blob.sha256}`
    const first = this.#underWay.get(where)
    // Only if there is one: during an `await`, the other hosts of this machine would begin too.
    if (first) await first.catch(() => {})
    const delivery = host.blobs.put(blob)
    this.#underWay.set(where, delivery)
    try {
      await delivery
    } catch (error) {
      if (!host.session.over)
        this.#events.notice(`node ${host.name}: ${(error as Error).message}; its workers get it over their links`)
    } finally {
      if (this.#underWay.get(where) === delivery) this.#underWay.delete(where)
    }
  }

  keepAlive(alive: boolean): void {
    this.#alive = alive
    alive ? this.#beats.ref() : this.#beats.unref()
    this.#gate?.keepAlive(alive)
    for (const host of this.#all) host.keepAlive(alive)
    if (alive) this.share()
    else this.#giveBack()
  }

  async stop(): Promise<void> {
    this.#stopped = true
    this.#gate?.close()
    await Promise.all(this.all.map((host) => host.leave(LEAVE_MS)))
    clearInterval(this.#beats)
  }

  /** Gives workers that are only kept warm to other drivers that wait; the next run can start its own. */
  #giveBack(): void {
    if (this.#alive) return
    for (const host of this.#waitedFor) host.giveBack('another driver needs it')
    this.#waitedFor.clear()
  }

  /** Sends what a host needs before it can run workers. */
  async #equip(host: RemoteNode): Promise<void> {
    try {
      for (const blob of this.#blobs.values()) await this.#bring(host, blob)
      // Last, so that no worker starts without code that was published meanwhile.
      for (const bundle of this.#bundles.values()) await host.publish(bundle)
    } catch (error) {
      unfit(host, error as Error)
      return
    }
    // The host may be gone meanwhile.
    if (host.session.over) return
    const { remote, output } = this.#placement
    const { execArgv, env } = remote
    const machine = thisMachine()
    host.say({
      ...{
        type: 'place',
        driver: `${hostname()}:${process.pid}`,
        pid: process.pid,
        runtime: this.#runtime!.sha256,
        output,
      },
      ...{ execArgv: [...execArgv], env: { ...env } },
      ...(machine === undefined ? {} : { machine }),
    })
    host.usable = true
    for (const blob of this.#blobs.values()) void this.#bring(host, blob)
    this.#policy.equipped(host)
    this.share()
    this.#events.capacityGrew()
  }

  #admit({ role, session, fresh }: Hello): number {
    if (role !== 'host')
      throw new Refusal('ROLE', 'this is a driver; only nodes may call it (manyworlds node --connect)')
    const known = this.#bySession(session)
    if (fresh && known === undefined) return 0
    if (known === undefined || known.session.abandoned)
      throw new Refusal('SESSION_ENDED', 'this driver has dropped the session of the node, or was restarted')
    if (fresh) throw new Refusal('MALFORMED', 'a session with that id already exists')
    return known.session.letGo()
  }

  #bySession(id: string): RemoteNode | undefined {
    for (const host of this.#all) if (host.session.id === id) return host
    return undefined
  }
}

function unfit(host: RemoteNode, error: Error): void {
  if (!host.session.over) host.breaks(error.message)
}
