import { hostname } from 'node:os'
import { makeRuntime } from '../../bundle/runtime.ts'
import { ManyworldsError } from '../../errors.ts'
import { showAddress } from '../../network/address.ts'
import type { DialError } from '../../network/dial.ts'
import { type Gate, openGate } from '../../network/gate.ts'
import { type Hello, Refusal } from '../../network/handshake.ts'
import { BEAT_MS } from '../../network/limits.ts'
import type { CodeBundle, EngineEvents, Placement } from '../engine.ts'
import { keepCalling } from './caller.ts'
import type { Credentials } from './credentials.ts'
import { RemoteNode } from './remote-node.ts'
import { share } from './share.ts'

/** How long the end of a node's workers is waited for. */
const LEAVE_MS = 5000
const MAX_JOINED = 10_000
/** A node that cannot start workers is asked again after this time. */
const HEAL_MS = 30_000

/** The nodes of one engine: those that it calls and those that join, their code, and how many workers each has. */
export class Nodes {
  readonly #credentials: Credentials
  readonly #placement: Placement
  readonly #events: EngineEvents
  readonly #stop = new AbortController()
  readonly #nodes = new Set<RemoteNode>()
  readonly #bundles = new Map<string, CodeBundle>()
  /** Addresses that have no node behind them at the moment, and why. */
  readonly #missing = new Map<string, DialError | undefined>()
  /** Addresses whose node was there, and is not. */
  readonly #lost = new Set<string>()
  /** Nodes on which other drivers wait for workers. */
  readonly #waitedFor = new Set<RemoteNode>()
  readonly #beats: NodeJS.Timeout
  #runtime: CodeBundle | undefined
  #gate: Gate | undefined
  #alive = true
  #wanted: number
  #waitTimer: NodeJS.Timeout | undefined

  constructor(credentials: Credentials, placement: Placement, events: EngineEvents) {
    this.#credentials = credentials
    this.#placement = placement
    this.#events = events
    this.#wanted = placement.workers
    for (const address of credentials.addresses) this.#missing.set(showAddress(address), undefined)
    this.#beats = setInterval(() => {
      // By looks, not by the clock: a driver that was busy for a minute has not heard anybody, and nobody is lost.
      for (const node of this.#nodes) node.beat()
    }, BEAT_MS)
  }

  get maxWorkers(): number {
    let sum = 0
    for (const node of this.#nodes) sum += node.capacity
    return Math.max(1, sum)
  }

  get elastic(): boolean {
    if (this.#credentials.listen !== undefined || this.#missing.size > 0) return true
    return [...this.#nodes].some(({ usable, draining, broken }) => (!usable || draining) && broken === undefined)
  }

  /** Whether a worker with these labels is there, or is being started. */
  offers(labels: readonly string[]): boolean {
    return [...this.#nodes].some((node) => node.capacity > 0 && node.wanted > 0 && node.hasLabels(labels))
  }

  async start(): Promise<void> {
    const { addresses, listen, token, clientTls: tls } = this.#credentials
    this.#runtime = await makeRuntime(this.#placement.workerEntry)
    this.#bundles.set(this.#runtime.sha256, this.#runtime)
    if (listen) await this.#listen(listen)
    const { signal } = this.#stop
    for (const address of addresses) {
      const name = showAddress(address)
      void keepCalling({
        ...{ address, token, tls, signal },
        newNode: () => this.#newNode(name),
        failed: (error) => this.#onUnreachable(name, error),
        reached: () => this.#onReached(name),
      })
    }
    this.#waitForNodes()
  }

  scale(workers: number): void {
    this.#wanted = workers
    this.#share()
  }

  async publish(bundle: CodeBundle): Promise<void> {
    this.#bundles.set(bundle.sha256, bundle)
    // One that cannot take it is as good as lost, and others go on; those that come later get it before they are used.
    const usable = [...this.#nodes].filter((node) => node.usable)
    await Promise.all(usable.map((node) => node.publish(bundle).catch((error: Error) => this.#unfit(node, error))))
  }

  keepAlive(alive: boolean): void {
    this.#alive = alive
    alive ? this.#beats.ref() : this.#beats.unref()
    this.#gate?.keepAlive(alive)
    for (const node of this.#nodes) node.keepAlive(alive)
    if (alive) this.#share()
    else this.#giveBack()
  }

  async stop(): Promise<void> {
    this.#stop.abort()
    clearTimeout(this.#waitTimer)
    this.#gate?.close()
    await Promise.all([...this.#nodes].map((node) => node.leave(LEAVE_MS)))
    clearInterval(this.#beats)
  }

  /** What is kept warm for the next call goes to others who wait; that call can start workers of its own. */
  #giveBack(): void {
    if (this.#alive) return
    for (const node of this.#waitedFor) node.giveBack()
    this.#waitedFor.clear()
  }

  #newNode(name: string, sessionId?: string): RemoteNode {
    const events = this.#events
    const node = new RemoteNode(
      name,
      {
        here: (one, info) => {
          if (sessionId !== undefined) one.name = this.#ownName(one, info.host)
          void this.#equip(one)
        },
        link: (link) => events.link(link),
        retire: (link, reason) => events.retire(link, reason),
        changed: (one) => this.#onChanged(one),
        notice: (line) => events.notice(line),
        othersWait: (one) => {
          this.#waitedFor.add(one)
          this.#giveBack()
        },
        output: (text) => void process.stderr.write(text),
        gone: (one, reason) => this.#onGone(one, reason),
      },
      sessionId,
    )
    node.keepAlive(this.#alive)
    this.#nodes.add(node)
    return node
  }

  /** Two nodes may run on one machine. */
  #ownName(node: RemoteNode, host: string): string {
    const names = new Set([...this.#nodes].filter((other) => other !== node).map(({ name }) => name))
    let name = host
    for (let number = 2; names.has(name); number++) name = `${host}#${number}`
    return name
  }

  /** Sends what a node needs before it can have workers. */
  async #equip(node: RemoteNode): Promise<void> {
    try {
      for (const bundle of this.#bundles.values()) await node.publish(bundle)
    } catch (error) {
      this.#unfit(node, error as Error)
      return
    }
    // It may have gone in the same breath.
    if (node.session.over) return
    const { elsewhere, output } = this.#placement
    const driver = `${hostname()}:${process.pid}`
    const { execArgv, env } = elsewhere
    node.say({
      type: 'place',
      driver,
      runtime: this.#runtime!.sha256,
      execArgv: [...execArgv],
      env: { ...env },
      output,
    })
    node.usable = true
    clearTimeout(this.#waitTimer)
    this.#waitTimer = undefined
    this.#share()
    this.#events.roomier()
  }

  #unfit(node: RemoteNode, error: Error): void {
    if (node.session.over) return
    node.broken = error.message
    this.#onChanged(node)
  }

  #share(): void {
    const nodes = [...this.#nodes].filter(({ capacity }) => capacity > 0)
    const shares = share(
      this.#wanted,
      nodes.map(({ capacity }) => capacity),
    )
    nodes.forEach((node, index) => {
      node.want(shares[index]!)
    })
  }

  #onChanged(node: RemoteNode): void {
    if (node.broken !== undefined) {
      // Also one that is only just getting its code.
      const others = [...this.#nodes].some(({ broken }) => broken === undefined)
      if (!others && !this.elastic) {
        this.#events.failed(new ManyworldsError('WORKER_START_FAILED', `node ${node.name}: ${node.broken}`))
        return
      }
      this.#events.notice(`node ${node.name} cannot be used: ${node.broken}`)
      setTimeout(() => this.#tryAgain(node), HEAL_MS).unref()
    }
    this.#share()
  }

  /** What kept its workers from starting may be over: a full disk, too little memory. */
  #tryAgain(node: RemoteNode): void {
    if (node.session.over || node.broken === undefined) return
    node.broken = undefined
    node.want(0)
    this.#share()
  }

  #onGone(node: RemoteNode, reason: string): void {
    this.#nodes.delete(node)
    this.#waitedFor.delete(node)
    if (this.#stop.signal.aborted || node.info === undefined) return
    const called = this.#credentials.addresses.some((address) => showAddress(address) === node.name)
    if (called) {
      this.#missing.set(node.name, undefined)
      this.#lost.add(node.name)
    }
    this.#events.notice(
      node.draining
        ? `node ${node.name} has left`
        : `node ${node.name} was lost (${reason}); its tasks go to others${called ? ', and it is used again when it is back' : ''}`,
    )
    this.#share()
    this.#waitForNodes()
  }

  #onReached(name: string): void {
    this.#missing.delete(name)
    if (this.#lost.delete(name)) this.#events.notice(`node ${name} is back`)
  }

  #onUnreachable(name: string, error: DialError): void {
    const before = this.#missing.get(name)
    this.#missing.set(name, error)
    // Of one that was lost, it was said already that it is not there.
    if (before?.message !== error.message && !(error.nobodyThere && this.#lost.has(name)))
      this.#events.notice(`node ${name}: ${error.message}${error.hopeless ? '' : '; trying again'}`)
    const hopeless = [...this.#missing.values()].every((problem) => problem?.hopeless)
    if (hopeless && this.#nodes.size === 0 && this.#credentials.listen === undefined) this.#giveUp()
  }

  /** Somebody has to come within a while, unless it is others who decide when. */
  #waitForNodes(): void {
    if ([...this.#nodes].some(({ usable, broken }) => usable && broken === undefined) || this.#waitTimer !== undefined)
      return
    if (this.#credentials.listen !== undefined) return
    this.#waitTimer = setTimeout(() => this.#giveUp(), this.#credentials.waitMs)
    this.#waitTimer.unref()
  }

  #giveUp(): void {
    if (this.#stop.signal.aborted) return
    const problems = [...this.#missing].map(
      ([name, error]) => `${name}: ${error?.message ?? 'it was lost, and is not back'}`,
    )
    const refused = [...this.#missing.values()].some((error) => error?.hopeless)
    const text = `no node can be used: ${problems.join('; ')}`
    const nobody = [...this.#missing.values()].every((error) => error === undefined || error.nobodyThere)
    const advice = nobody ? '. Start one there with `manyworlds node --listen HOST:PORT`' : ''
    this.#events.failed(new ManyworldsError(refused ? 'NODE_REFUSED' : 'NODES_UNREACHABLE', text + advice))
  }

  async #listen(listen: { host: string; port: number }): Promise<void> {
    const { token, serverTls } = this.#credentials
    try {
      this.#gate = await openGate({
        ...{ host: listen.host, port: listen.port, token, tls: serverTls, maxConnections: MAX_JOINED },
        admit: (hello) => this.#admit(hello),
        accept: (peer, hello) => {
          const known = this.#bySession(hello.session)
          if (known) known.attach(peer, hello.received)
          else this.#newNode(peer.address, hello.session).attach(peer, 0)
        },
        refused: (line) => this.#events.notice(`a node could not join: ${line}`),
      })
    } catch (cause) {
      throw new ManyworldsError(
        'ENGINE_FAILED',
        `nodes.listen: cannot listen on ${showAddress(listen)}: ${(cause as Error).message}`,
        { cause },
      )
    }
    // It may have been stopped, or have nothing to do any more, while it began to listen.
    if (this.#stop.signal.aborted) return this.#gate.close()
    this.#gate.keepAlive(this.#alive)
    const scheme = serverTls ? 'wss' : 'ws'
    const here = showAddress({ host: isAnyHost(listen.host) ? hostname() : listen.host, port: this.#gate.port })
    this.#events.notice(
      `nodes can join: manyworlds node --connect ${scheme}://${here}${token === undefined ? '' : ' --token-file FILE'}`,
    )
  }

  #admit({ role, session, fresh }: Hello): number {
    if (role !== 'host')
      throw new Refusal('ROLE', 'this is a driver; it is called by nodes (manyworlds node --connect)')
    const known = this.#bySession(session)
    if (fresh && known === undefined) return 0
    if (known === undefined) throw new Refusal('SESSION_GONE', 'this driver has given the node up, or was started anew')
    if (fresh) throw new Refusal('MALFORMED', 'a session of that name is there already')
    return known.session.letGo()
  }

  #bySession(id: string): RemoteNode | undefined {
    for (const node of this.#nodes) if (node.session.id === id) return node
    return undefined
  }
}

const isAnyHost = (host: string) => host === '0.0.0.0' || host === '::'
