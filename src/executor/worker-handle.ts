import type { WorkerLink } from '../engines/engine.ts'
import type { ManyworldsError } from '../errors.ts'
import { Channel, type MessageCheck, type Wire } from '../protocol/channel.ts'
import { checkSideMessage, checkWorkerMessage } from '../protocol/check-messages.ts'
import { scanBatch } from '../protocol/codec.ts'
import {
  type BundlePlace,
  type DriverMessage,
  type ErrorItem,
  PROTOCOL_VERSION,
  type Profile,
  STEP_WINDOW,
  type TaskItem,
  type WorkerMessage,
  type WorkerSettings,
} from '../protocol/messages.ts'
import { splitWire } from '../protocol/split-wire.ts'
import type { WorkerName } from '../task.ts'
import type { AgentState } from './agents.ts'
import type { Loaded } from './load-buckets.ts'
import type { Pace } from './pace.ts'
import type { Lease, TaskEntry } from './task-entry.ts'
import { Window } from './window.ts'

/** Tasks go to a worker in frames of about this size. */
const BATCH_BYTES = 128 * 1024
const AUTOMATIC = '#'.charCodeAt(0)

/** One of the two channels of a worker. */
export type Speaker = Channel<DriverMessage, WorkerMessage>

/** A worker as the executor sees it: which tasks it holds, and how many more it may get. */
export class WorkerHandle implements Loaded {
  readonly link: WorkerLink
  readonly name: WorkerName
  readonly channel: Speaker
  /** The channel of its side thread, which only makes requests. */
  readonly #side: Speaker
  window: Window
  readonly leases = new Map<number, Lease>()
  /** Leases that ended without an outcome from this worker. A late outcome is matched with them. */
  readonly lost = new Map<number, Lease>()
  state: 'starting' | 'ready' | 'retiring' | 'closed' = 'starting'
  /** Tasks that it holds and that do not wait for sub-tasks. */
  load = 0
  slot = -1
  bucket = 0
  /** How fast its machine is. */
  readonly pace: Pace
  /** How many of its tasks wait for their turn at a service. */
  queuing = 0
  /** It gets no more tasks because too many of its tasks wait for their turn. */
  isHeldUp = false
  /** It exceeds `workerNum` of this run; kept warm for another run. */
  spare = false
  /** It gets no new tasks, and suspects once it is empty. */
  reserved = false
  /** It runs only suspects, and reports the start of each. */
  careful = false
  /** The task that called `process.exit`, as the worker reported it; the first report counts. */
  exiting: { lease: number; error: ErrorItem; runMs: number | undefined } | undefined
  /** The driver ended it: all its tasks are innocent. */
  expected = false
  /** Why the driver ended it, if it did for a fault of the worker. */
  faulty: string | undefined
  /** How many of its agents are being imported or set up. */
  preparing = 0
  /** Cancellations that it has not acknowledged. */
  readonly #unseen = new Set<number>()
  unseenTimer: NodeJS.Timeout | undefined
  #settings: WorkerSettings
  /** The agreed codec, after the handshake. */
  #codec: string | undefined
  readonly #entryScript: string | undefined
  /** The agents that it was told of, each with the location of its code. */
  readonly #agents = new Map<number, BundlePlace | undefined>()
  /** The agents that it has loaded. */
  readonly loaded = new Set<number>()
  readonly #profiles = new Set<number>()
  #batch: TaskItem[] = []
  /** Bytes of stored steps that are not yet acknowledged to it. */
  #stored = 0
  #batchBytes = 0
  /** Recalls that it has not answered. */
  #recalls = 0

  constructor(
    link: WorkerLink,
    settings: WorkerSettings,
    entryScript: string | undefined,
    pace: Pace,
    receive: (worker: WorkerHandle, message: WorkerMessage, by: Speaker) => void,
    broken: (worker: WorkerHandle, error: ManyworldsError) => void,
  ) {
    this.link = link
    this.#settings = settings
    this.#entryScript = entryScript
    this.pace = pace
    this.window = new Window(settings.concurrency)
    this.name = { id: link.id, host: link.info.host, pid: link.info.pid }
    const wires = splitWire(link)
    const open = (wire: Wire, check: MessageCheck): Speaker => {
      const channel: Speaker = new Channel<DriverMessage, WorkerMessage>(
        wire,
        check,
        (message) => {
          try {
            receive(this, message, channel)
          } catch (cause) {
            // An unexpected message must cost only this worker, not the driver and all other workers.
            channel.refuse(`a '${message.type}' that could not be handled`, cause)
          }
        },
        (error) => broken(this, error),
        scanBatch,
      )
      return channel
    }
    this.channel = open(wires.main, checkWorkerMessage)
    this.#side = open(wires.side, checkSideMessage)
  }

  /** Answers `ready`. From here on both ends use this codec. */
  greet(codec: string): void {
    this.#codec = codec
    this.#hello(codec)
    this.channel.speak(codec)
    this.#side.speak(codec)
  }

  #hello(codec: string): void {
    this.channel.control({ type: 'hello', protocol: PROTOCOL_VERSION, codec, settings: this.#settings })
  }

  reconfigure(settings: WorkerSettings): void {
    this.#settings = settings
    this.window = new Window(settings.concurrency)
    // Before the handshake there is nothing to send: `hello` will have the new settings.
    if (this.#codec !== undefined) this.#hello(this.#codec)
  }

  /** Has this worker load an agent, once per location of its code. */
  introduce(agent: AgentState): void {
    const { key, ref, params, size, place } = agent
    if (this.knows(agent)) return
    this.#agents.set(key, place)
    this.loaded.delete(key)
    this.flush()
    if (place === undefined) this.channel.post({ type: 'agent', key, ref, params, entry: this.#entryScript }, size)
    // A bundler reprints functions, so sources cannot be compared; the bundle's hash is used instead.
    else {
      const bundled = { ...ref, fingerprint: undefined }
      this.channel.post({ type: 'agent', key, ref: bundled, params, entry: undefined, bundle: place }, size)
    }
  }

  /** Whether it was told to load this agent: only then may it report the result. */
  knows({ key, place }: AgentState): boolean {
    return this.#agents.has(key) && this.#agents.get(key) === place
  }

  /** Adds a task to the batch for this worker. */
  add(lease: Lease, profile: Profile): void {
    const { entry } = lease
    const { options } = entry
    this.introduce(entry.agent)
    if (!this.#profiles.has(entry.profile)) {
      this.#profiles.add(entry.profile)
      this.channel.ride({ type: 'profile', key: entry.profile, profile })
    }
    const extras =
      options.info !== undefined || options.previous !== undefined || options.results !== undefined
        ? extrasOf(entry)
        : undefined
    const wireId = entry.id.charCodeAt(0) === AUTOMATIC && entry.parent === undefined ? entry.index : entry.id
    const item: TaskItem =
      extras === undefined && entry.attempts === 0
        ? [lease.id, entry.profile, wireId, entry.input]
        : [lease.id, entry.profile, wireId, entry.input, entry.attempts + 1, extras ?? NO_EXTRAS]
    if (entry.size > BATCH_BYTES) {
      this.flush()
      this.channel.post({ type: 'run', tasks: [item], careful: this.careful }, entry.size)
      return
    }
    this.#batch.push(item)
    this.#batchBytes += entry.size + 48
    if (this.#batchBytes > BATCH_BYTES) this.flush()
  }

  /** The run of these profiles is over. */
  forget(profiles: readonly number[]): void {
    const known = profiles.filter((key) => this.#profiles.delete(key))
    if (known.length > 0) this.channel.ride({ type: 'forget', profiles: known })
  }

  flush(): void {
    if (this.#batch.length === 0) return
    const tasks = this.#batch
    this.#batch = []
    this.#batchBytes = 0
    this.channel.post({ type: 'run', tasks, careful: this.careful })
  }

  /** Asks the worker to cancel a task. If it does not acknowledge in time, its event loop is blocked. */
  cancel(lease: number, reason: 'cancelled' | 'deadline', noticeMs: number): void {
    this.flush()
    this.channel.control({ type: 'cancel', lease, reason })
    this.#unseen.add(lease)
    this.unseenTimer ??= setTimeout(() => this.#onUnseen(noticeMs), noticeMs)
  }

  /** If the cancel may not have been delivered, blame the connection, not the worker. */
  #onUnseen(noticeMs: number): void {
    const connectedForMs = this.link.connectedForMs?.() ?? noticeMs
    if (connectedForMs >= noticeMs) this.end()
    else this.unseenTimer = setTimeout(() => this.#onUnseen(noticeMs), noticeMs)
  }

  cancelSeen(lease: number): void {
    this.#unseen.delete(lease)
    if (this.#unseen.size > 0) return
    clearTimeout(this.unseenTimer)
    this.unseenTimer = undefined
  }

  /** Asks for the tasks that it has not started. */
  recall(): void {
    this.#recalls++
    this.channel.control({ type: 'recall' })
  }

  /** It answers a recall. Throws if there was none. */
  recalled(): void {
    if (this.#recalls === 0) throw new RangeError('it was not asked to return tasks')
    this.#recalls--
  }

  /** These bytes of its steps are stored: it may send as many more. */
  stored(bytes: number): void {
    this.#stored += bytes
    if (this.#stored < STEP_WINDOW / 4 || this.state === 'closed') return
    this.channel.control({ type: 'stored', bytes: this.#stored })
    this.#stored = 0
  }

  retire(): void {
    this.state = 'retiring'
    this.endIfEmpty()
  }

  endIfEmpty(): void {
    if (this.state !== 'retiring' || this.leases.size > 0) return
    this.end()
  }

  end(): void {
    this.expected = true
    this.link.kill()
  }

  /** Ends it because it does not do what a worker does. Any of its tasks may be the reason. */
  endFaulty(reason: string): void {
    this.faulty ??= reason
    this.link.kill()
  }

  /** Whether it is disconnected at the moment. */
  get isAway(): boolean {
    return this.link.connectedForMs?.() === 0
  }

  get weight(): number {
    return this.pace.weight
  }

  get takesMore(): boolean {
    return this.state === 'ready' && !this.spare && !this.reserved && !this.careful && this.load < this.window.limit
  }

  hasLabels(required: readonly string[]): boolean {
    return required.every((label) => this.link.info.labels?.includes(label))
  }
}

const NO_EXTRAS = {}

function extrasOf({ options }: TaskEntry) {
  const { info, previous, results } = options
  return {
    ...(info === undefined ? {} : { info }),
    ...(previous === undefined ? {} : { previous }),
    ...(results === undefined ? {} : { results }),
  }
}
