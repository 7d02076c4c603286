import { ManyworldsError } from '../../errors.ts'
import type { EngineEvents, Placement } from '../engine.ts'
import type { Bridge, BridgeEvent } from './bridge.ts'
import { isFinal, isMachineLost, lossOf } from './error-advice.ts'
import type { Receiver } from './fetches.ts'
import type { RayOptions } from './options.ts'
import { RayLink } from './ray-link.ts'
import { actorOptions } from './ray-settings.ts'
import { KILLED_TRIES, START_TRIES, StartTries } from './start-tries.ts'

/**
 * How often to check for silent actors, and after how many checks one counts as lost. Checks, not time: see the local engine.
 * More than the lease of an actor (`LEASE_SECONDS` in `ray_worker.py`), so that its tasks do not run in two places.
 */
export const LOOK_MS = 1000
const LOOKS_MISSED = 20
/** The delay between the loss of an actor and the request for another. */
const RESPAWN_MS = 500
/** The user is told after a worker has waited this long for resources. */
const WAITING_MS = 5000

/** A message of the bridge about one actor or its process. */
export type ActorEvent = Extract<
  BridgeEvent,
  { event: 'placed' | 'starting' | 'started' | 'beat' | 'printed' | 'taken' | 'ended' | 'lost'; worker: number }
>

/** One wanted worker, by its number, and the actor that holds its process. */
interface Place {
  readonly number: number
  /** The number of the actor. Its replacement gets another one. */
  readonly worker: number
  generation: number
  host: string
  link: RayLink | undefined
  /** Checks since the actor's last message. */
  silent: number
  readonly waitingSince: number
  /** Resolves when the actor is gone. */
  readonly gone: PromiseWithResolvers<void>
}

export interface ActorsOptions {
  readonly options: RayOptions
  readonly placement: Placement
  readonly events: EngineEvents
  readonly bridge: () => Bridge
  /** The hashes of the code and blobs that a worker needs. */
  readonly codes: () => readonly string[]
  readonly blobs: () => readonly string[]
}

/** The actors, one per wanted worker. Lost actors are replaced. */
export class Actors {
  readonly #with: ActorsOptions
  readonly #places = new Map<number, Place>()
  readonly #byWorker = new Map<number, Place>()
  readonly #tries = new StartTries()
  /** The hash of the workers' program, once workers may start. */
  #runtime: string | undefined
  #wanted: number
  #nextWorker = 1
  #stopped = false

  constructor(options: ActorsOptions) {
    this.#with = options
    this.#wanted = options.placement.workers
  }

  get wanted(): number {
    return this.#wanted
  }

  /** Actors that have or start a process: they must be told of code and blobs that come now. */
  get receivers(): Receiver[] {
    return [...this.#places.values()]
      .filter(({ generation }) => generation > 0)
      .map(({ worker, gone }) => ({ worker, gone: gone.promise }))
  }

  /** The cluster is connected and has the workers' program. */
  open(runtime: string): void {
    this.#runtime = runtime
    this.#fill()
  }

  scale(workers: number): void {
    if (workers > this.#wanted) this.#tries.reset()
    this.#wanted = workers
    if (this.#runtime) this.#fill()
    // Surplus workers finish their tasks; then their actors release their resources.
    for (const { number, link } of this.#places.values())
      if (number >= workers && link) this.#with.events.retire(link, 'fewer workers are wanted')
  }

  /** New machines have joined the cluster: failed starts may succeed there. */
  tryAgain(): void {
    this.#tries.reset()
    this.#fill()
  }

  /** The link to a process; undefined if it was replaced meanwhile. */
  linkOf(worker: number, generation: number): RayLink | undefined {
    const link = this.#byWorker.get(worker)?.link
    return link?.generation === generation ? link : undefined
  }

  /** Drops actors that have been silent for too long. Returns how many workers have waited too long for resources. */
  look(): number {
    let waiting = 0
    for (const place of [...this.#places.values()]) {
      if (place.host === '') {
        if (Date.now() - place.waitingSince > WAITING_MS) waiting++
        continue
      }
      if (++place.silent <= LOOKS_MISSED) continue
      this.#with.bridge().control({ op: 'kill', worker: place.worker })
      this.#onLost(place, `nothing was heard from it for ${(place.silent * LOOK_MS) / 1000} s`)
    }
    return waiting
  }

  /** The bridge is gone with all actors. */
  loseAll(reason: string): void {
    for (const { link, gone } of this.#places.values()) {
      link?.ended({ code: null, signal: null, reason, placeLost: true })
      gone.resolve()
    }
    this.#places.clear()
    this.#byWorker.clear()
  }

  /** Starts nothing more. */
  stop(): void {
    this.#stopped = true
  }

  /** All processes were ended. */
  ended(): void {
    for (const { link, gone } of this.#places.values()) {
      link?.ended({ code: null, signal: 'SIGKILL' })
      gone.resolve()
    }
  }

  // ---- messages from the bridge

  on(event: ActorEvent): void {
    const place = this.#byWorker.get(event.worker)
    if (place === undefined) return
    place.silent = 0
    switch (event.event) {
      case 'placed':
        place.host = event.host
        // Fewer workers may be wanted meanwhile.
        return place.number < this.#wanted ? this.#startProcess(place) : this.#release(place)
      case 'started':
        return this.#onStarted(place, event)
      case 'starting':
      case 'beat':
        return
      case 'printed':
        return this.linkOf(event.worker, event.generation)?.printed(event.text)
      case 'taken':
        return this.linkOf(event.worker, event.generation)?.taken(event.bytes)
      case 'ended':
        return this.#onEnded(place, event)
      case 'lost':
        return this.#onLost(place, `${event.kind}: ${event.text}`)
      default:
        event satisfies never
    }
  }

  #onStarted(place: Place, { pid, generation }: Extract<BridgeEvent, { event: 'started' }>): void {
    const { events, bridge } = this.#with
    const info = { host: place.host, pid }
    place.link = new RayLink(bridge(), place.worker, `ray-${place.number}`, generation, info, (line) =>
      events.notice(line),
    )
    events.link(place.link)
    if (place.number >= this.#wanted) events.retire(place.link, 'fewer workers are wanted')
  }

  /** The process has ended; its actor still exists. */
  #onEnded(place: Place, { code, signal, lastWords, stderr }: Extract<BridgeEvent, { event: 'ended' }>): void {
    const { link } = place
    place.link = undefined
    link?.ended({
      ...{ code, signal },
      ...(lastWords === null ? {} : { lastWords }),
      ...(stderr === null ? {} : { stderr }),
    })
    if (this.#stopped) return
    if (place.number >= this.#wanted) return this.#release(place)
    if (link?.spoke) {
      this.#tries.worked(place.number)
      return this.#startProcess(place)
    }
    // Somebody killed it, which does not prove that it cannot start.
    const wasKilled = signal === 'SIGKILL' && stderr === null && this.#othersWork()
    if (wasKilled && this.#tries.killed(place.number)) {
      setTimeout(() => {
        if (!this.#stopped && this.#byWorker.get(place.worker) === place) this.#startProcess(place)
      }, RESPAWN_MS)
      return
    }
    const said = stderr === null ? ' and said nothing' : `; the last one said:\n${stderr}`
    const how = signal === null ? `exit code ${code}` : `signal ${signal}`
    const text = `workers on Ray end before they are ready (${how} on ${place.host}, ${wasKilled ? KILLED_TRIES : START_TRIES} times in a row)${said}`
    this.#startFailed(place.number, wasKilled, new ManyworldsError('WORKER_START_FAILED', text))
    if (this.#tries.allows(place.number)) this.#startProcess(place)
    else this.#release(place)
  }

  /** The actor or its machine is gone, or the actor could not be created. */
  #onLost(place: Place, words: string): void {
    this.#forget(place)
    const why = lossOf(words)
    place.link?.ended({ code: null, signal: null, reason: `its Ray actor was lost: ${why}`, placeLost: true })
    if (this.#stopped) return
    this.#with.bridge().control({ op: 'look' })
    let againMs: number | undefined = RESPAWN_MS
    if (place.link?.spoke) this.#tries.worked(place.number)
    // No retry limit: the number of machines limits how often this can happen.
    else if (!isMachineLost(words)) {
      const error = new ManyworldsError('RAY_FAILED', `no worker can be started on the Ray cluster: ${why}`, {
        cause: new Error(words),
      })
      againMs = this.#startFailed(place.number, isFinal(words), error)
    }
    if (againMs !== undefined) setTimeout(() => this.#fill(), againMs)
  }

  /** Returns after how many ms to retry; undefined: the retry limit is reached and the user was told. */
  #startFailed(number: number, final: boolean, error: ManyworldsError): number | undefined {
    const { events } = this.#with
    const againMs = this.#tries.failed(number, final)
    if (againMs !== undefined) return againMs
    if (this.#othersWork()) {
      events.notice(`worker ray-${number} cannot be started, the others go on: ${error.message}`)
      return undefined
    }
    // No worker runs, and this error is permanent: the others would fail too.
    this.#wanted = 0
    events.failed(error)
    return undefined
  }

  #othersWork(): boolean {
    return [...this.#places.values()].some(({ link }) => link?.spoke)
  }

  // ---- messages to the bridge

  #fill(): void {
    if (this.#stopped) return
    for (let number = 0; number < this.#wanted; number++)
      if (!this.#places.has(number) && this.#tries.allows(number)) this.#spawn(number)
  }

  #spawn(number: number): void {
    const { options, placement, bridge } = this.#with
    const worker = this.#nextWorker++
    const unplaced = { generation: 0, host: '', link: undefined, silent: 0, waitingSince: Date.now() }
    const place: Place = { number, worker, ...unplaced, gone: Promise.withResolvers() }
    this.#places.set(number, place)
    this.#byWorker.set(worker, place)
    const name = `manyworlds/${placement.run ?? process.pid}/${number}${worker > number + 1 ? `.${worker}` : ''}`
    bridge().control({ op: 'spawn', worker, name, options: actorOptions(options) })
  }

  #startProcess(place: Place): void {
    const { options, placement, bridge, codes, blobs } = this.#with
    const { execArgv, env } = placement.remote
    const { nodeBinary = 'auto' } = options
    const program = { runtime: this.#runtime!, nodeBinary, execArgv, env, shows: placement.output === 'show' }
    place.generation++
    const { worker, generation } = place
    bridge().control({ op: 'start', worker, generation, codes: codes(), blobs: blobs(), program })
  }

  /** Releases the actor's resources. */
  #release(place: Place): void {
    this.#forget(place)
    this.#with.bridge().control({ op: 'kill', worker: place.worker })
  }

  #forget({ number, worker, gone }: Place): void {
    this.#places.delete(number)
    this.#byWorker.delete(worker)
    gone.resolve()
  }
}
