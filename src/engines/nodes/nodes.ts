import { hostname } from 'node:os'
import { ManyworldsError } from '../../errors.ts'
import { type Address, showAddress } from '../../network/address.ts'
import type { DialError } from '../../network/dial.ts'
import { userToken } from '../../network/token.ts'
import { type Reason, reasonOf } from '../../text/reason.ts'
import type { BlobContent, CodeBundle, EngineEvents, Placement } from '../engine.ts'
import type { LoadedEngine } from '../lazy-engine.ts'
import { CalledNodes } from './called-nodes.ts'
import { keepCalling } from './caller.ts'
import type { Credentials } from './credentials.ts'
import { Hosts } from './hosts.ts'
import type { RemoteNode } from './remote-node.ts'
import { share } from './share.ts'

/** A node that could not start workers is tried again after this time. */
const HEAL_MS = 30_000

/** The nodes of one engine: those that it calls, and those that join. */
export class Nodes implements LoadedEngine {
  readonly #credentials: Credentials
  readonly #events: EngineEvents
  readonly #stop = new AbortController()
  readonly #hosts: Hosts
  readonly #called: CalledNodes
  #waitTimer: NodeJS.Timeout | undefined

  constructor(credentials: Credentials, placement: Placement, events: EngineEvents) {
    this.#credentials = credentials
    this.#events = events
    this.#called = new CalledNodes(credentials.addresses.map(showAddress))
    this.#hosts = new Hosts(placement, events, {
      share: (wanted, hosts) =>
        share(
          wanted,
          hosts.map(({ capacity }) => capacity),
        ),
      joined: (node, { host }) => {
        node.name = this.#ownName(node, host)
      },
      equipped: () => {
        clearTimeout(this.#waitTimer)
        this.#waitTimer = undefined
      },
      broke: (node) => this.#onBroken(node),
      gone: (node, reason) => this.#onGone(node, reason),
    })
  }

  get maxWorkers(): number {
    return Math.max(1, this.#hosts.capacity)
  }

  get elastic(): boolean {
    if (this.#credentials.listen !== undefined || this.#called.someMissing) return true
    return this.#hosts.all.some(({ usable, draining, broken }) => (!usable || draining) && broken === undefined)
  }

  /** Whether a worker with these labels exists or is being started. */
  offers(labels: readonly string[]): boolean {
    return this.#hosts.all.some((node) => node.capacity > 0 && node.wanted > 0 && node.hasLabels(labels))
  }

  async start(): Promise<void> {
    const { addresses, listen, token, clientTls: tls } = this.#credentials
    await this.#hosts.prepare()
    if (listen) await this.#listen(listen)
    const { signal } = this.#stop
    for (const address of addresses) {
      const name = showAddress(address)
      void keepCalling({
        ...{ address, token, tls, signal },
        newNode: () => this.#hosts.add(name),
        failed: (error) => this.#onUnreachable(name, error),
        reached: () => this.#onReached(name),
      })
    }
    this.#waitForNodes()
  }

  scale(workers: number): void {
    this.#hosts.scale(workers)
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
    this.#hosts.keepAlive(alive)
  }

  async stop(): Promise<void> {
    this.#stop.abort()
    clearTimeout(this.#waitTimer)
    await this.#hosts.stop()
  }

  /** The host name, with a number if another node has the same name: two nodes may run on one machine. */
  #ownName(node: RemoteNode, host: string): string {
    const names = new Set(this.#hosts.all.filter((other) => other !== node).map(({ name }) => name))
    let name = host
    for (let number = 2; names.has(name); number++) name = `${host}#${number}`
    return name
  }

  #onBroken(node: RemoteNode): void {
    // Includes a node that is still receiving its code.
    const others = this.#hosts.all.some(({ broken }) => broken === undefined)
    if (!others && !this.elastic) {
      this.#events.failed(new ManyworldsError('WORKER_START_FAILED', `node ${node.name}: ${node.broken}`))
      return
    }
    this.#events.notice(`node ${node.name} cannot be used: ${node.broken}`)
    setTimeout(() => this.#tryAgain(node), HEAL_MS).unref()
  }

  /** Tries the node again: a full disk or a lack of memory may have passed. */
  #tryAgain(node: RemoteNode): void {
    if (node.session.over || node.broken === undefined) return
    node.broken = undefined
    node.want(0)
    this.#hosts.share()
  }

  #onGone(node: RemoteNode, reason: Reason): void {
    const called = this.#called.has(node.name)
    // One that was never connected: `keepCalling` reports the call.
    if (node.info === undefined && !(called && node.wasConnected)) return
    if (called) this.#called.lost(node.name, reason)
    this.#events.notice(
      node.draining
        ? `node ${node.name} has left`
        : `node ${node.name} was lost (${reason}); its tasks run on other nodes${called ? ', and it is used again when it reconnects' : ''}`,
    )
    this.#waitForNodes()
  }

  #onReached(name: string): void {
    if (this.#called.connected(name)) this.#events.notice(`node ${name} is back`)
  }

  #onUnreachable(name: string, error: DialError): void {
    if (this.#called.failed(name, error))
      this.#events.notice(`node ${name}: ${error.message}${error.hopeless ? '' : '; trying again'}`)
    if (this.#called.hopeless && this.#credentials.listen === undefined) this.#giveUp()
  }

  /** Fails the run if no node connects in time, unless nodes join on their own (`listen`). */
  #waitForNodes(): void {
    if (this.#hosts.all.some(({ usable, broken }) => usable && broken === undefined) || this.#waitTimer !== undefined)
      return
    if (this.#credentials.listen !== undefined) return
    this.#waitTimer = setTimeout(() => this.#giveUp(), this.#credentials.waitMs)
    this.#waitTimer.unref()
  }

  #giveUp(): void {
    if (this.#stop.signal.aborted) return
    const { code, text } = this.#called.giveUp(
      (name) => this.#hosts.all.find((node) => node.name === name)?.unusable ?? reasonOf('', 'it has just left'),
    )
    this.#events.failed(new ManyworldsError(code, text))
  }

  async #listen(listen: Address): Promise<void> {
    const { token, serverTls } = this.#credentials
    const refused = (line: string) => this.#events.notice(`a node could not join: ${line}`)
    const secret = token ?? userToken()
    let port: number
    try {
      port = await this.#hosts.listen({
        ...{ host: listen.host, port: listen.port, token: secret, tls: serverTls, refused },
      })
    } catch (cause) {
      throw new ManyworldsError(
        'ENGINE_FAILED',
        `nodes.listen: cannot listen on ${showAddress(listen)}: ${(cause as Error).message}`,
        { cause },
      )
    }
    if (this.#stop.signal.aborted) return
    const scheme = serverTls ? 'wss' : 'ws'
    const here = showAddress({ host: isAnyHost(listen.host) ? hostname() : listen.host, port })
    this.#events.notice(
      `nodes can join: manyworlds node --connect ${scheme}://${here}${token === undefined ? '' : ' --token-file FILE'}`,
    )
  }
}

const isAnyHost = (host: string) => host === '0.0.0.0' || host === '::'
