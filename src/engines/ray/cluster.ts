import { makeRuntime } from '../../bundle/runtime.ts'
import type { BlobContent, CodeBundle, EngineEvents, Placement } from '../engine.ts'
import type { LoadedEngine } from '../lazy-engine.ts'
import { Actors, LOOK_MS } from './actors.ts'
import type { Bridge, BridgeEvent, RayNode } from './bridge.ts'
import { connectToRay } from './connect.ts'
import { disconnectError } from './error-advice.ts'
import { demandOf, nodesFor, refuseTheImpossible, roomFor, showResources } from './fit.ts'
import type { RayOptions } from './options.ts'
import { PublishedCode } from './published-code.ts'
import { RayBlobs } from './ray-blobs.ts'
import { initOptions } from './ray-settings.ts'

/** Ray is asked for its machines after this many checks: some may have joined. */
const LOOKS_PER_NODES = 3
const STOP_MS = 10_000

/** One engine on a Ray cluster: the bridge to it, its machines, the code and the actors there. */
export class Cluster implements LoadedEngine {
  readonly #options: RayOptions
  readonly #inLocal: boolean
  readonly #placement: Placement
  readonly #events: EngineEvents
  readonly #demand: Record<string, number>
  readonly #code = new PublishedCode(() => this.#bridge!)
  readonly #blobs: RayBlobs
  readonly #actors: Actors
  #bridge: Bridge | undefined
  #nodes: readonly RayNode[] = []
  #alive = true
  #stopped = false
  #looks: NodeJS.Timeout | undefined
  #looksDone = 0
  #saidWaiting = false

  constructor(options: RayOptions, inLocal: boolean, placement: Placement, events: EngineEvents) {
    this.#options = options
    this.#inLocal = inLocal
    this.#placement = placement
    this.#events = events
    this.#demand = demandOf(options)
    this.#blobs = new RayBlobs(() => this.#bridge!, events.notice)
    this.#actors = new Actors({
      ...{ options, placement, events, bridge: () => this.#bridge! },
      codes: () => this.#code.hashes,
      blobs: () => this.#blobs.hashes,
    })
  }

  get maxWorkers(): number {
    return this.#options.autoscaling ? Number.MAX_SAFE_INTEGER : Math.max(1, this.#room)
  }

  get elastic(): boolean {
    return this.#options.autoscaling === true
  }

  /** How many workers fit on the cluster's present machines. */
  get #room(): number {
    return roomFor(this.#demand, nodesFor(this.#options, this.#nodes))
  }

  async start(): Promise<void> {
    const [runtime, connected] = await Promise.all([makeRuntime(this.#placement.workerEntry), this.#connect()])
    if (this.#stopped || connected === undefined) return
    this.#nodes = connected.nodes
    refuseTheImpossible(this.#options, this.#nodes)
    await this.#code.publish(runtime, () => [])
    this.#looks = setInterval(() => this.#look(), LOOK_MS)
    if (!this.#alive) this.#looks.unref()
    this.#events.capacityGrew()
    this.#actors.open(runtime.sha256)
  }

  scale(workers: number): void {
    this.#actors.scale(workers)
  }

  publish(bundle: CodeBundle): Promise<void> {
    return this.#code.publish(bundle, () => this.#actors.receivers)
  }

  putBlob(blob: BlobContent): Promise<void> {
    return this.#blobs.put(blob, () => this.#actors.receivers)
  }

  dropBlob(sha256: string): void {
    this.#blobs.drop(sha256)
  }

  keepAlive(alive: boolean): void {
    this.#alive = alive
    this.#bridge?.keepAlive(alive)
    alive ? this.#looks?.ref() : this.#looks?.unref()
  }

  async stop(): Promise<void> {
    this.#stopped = true
    this.#actors.stop()
    clearInterval(this.#looks)
    await this.#bridge?.stop(STOP_MS)
    this.#actors.ended()
    await this.#blobs.remove()
  }

  #connect(): ReturnType<typeof connectToRay> {
    return connectToRay({
      options: this.#options,
      inLocal: this.#inLocal,
      init: initOptions(this.#options, this.#inLocal, Math.max(1, this.#placement.workers)),
      notice: (line) => this.#events.notice(line),
      stopped: () => this.#stopped,
      trying: (bridge) => {
        this.#bridge = bridge
        bridge.keepAlive(this.#alive)
      },
      hooks: {
        event: (event) => this.#on(event),
        data: (worker, generation, bytes) => this.#actors.linkOf(worker, generation)?.receive(bytes),
        ended: (how, stderr) => this.#onBridgeGone(how, stderr),
      },
    })
  }

  #on(event: BridgeEvent): void {
    switch (event.event) {
      case 'nodes':
        return this.#onNodes(event.nodes)
      case 'published':
        return this.#code.onPublished(event)
      case 'brought':
        return this.#code.onBrought(event)
      case 'blob-put':
        return this.#blobs.onPut(event)
      case 'blob-brought':
        return this.#blobs.onBrought(event)
      case 'blob-missing':
        return this.#blobs.onMissing(event)
      case 'init':
      case 'error':
        // A failed query of the cluster is repeated later; if the connection is gone, the bridge ends.
        return
      case 'placed':
      case 'starting':
      case 'started':
      case 'beat':
      case 'printed':
      case 'taken':
      case 'ended':
      case 'lost':
        return this.#actors.on(event)
      default:
        event satisfies never
    }
  }

  #onBridgeGone(how: string, stderr: string): void {
    if (this.#stopped) return
    const error = disconnectError(how, stderr)
    this.#actors.loseAll(error.message)
    this.#blobs.lost(error)
    this.#events.failed(error)
  }

  /** The machines of the cluster; more may have joined. */
  #onNodes(nodes: readonly RayNode[]): void {
    const known = new Set(this.#nodes.map(({ id }) => id))
    const room = this.#room
    this.#nodes = nodes
    if (nodes.every(({ id }) => known.has(id))) return
    this.#actors.tryAgain()
    if (this.#room > room) this.#events.capacityGrew()
  }

  #look(): void {
    if (++this.#looksDone % LOOKS_PER_NODES === 0 && this.#alive) this.#bridge!.control({ op: 'look' })
    const waiting = this.#actors.look()
    if (waiting > 0 && !this.#saidWaiting)
      this.#events.notice(
        `${waiting} of ${this.#actors.wanted} workers have no place on the Ray cluster yet (each asks for ${showResources(this.#demand)}): the cluster is busy, or is still starting them; the run goes on with the others`,
      )
    this.#saidWaiting = waiting > 0
  }
}
