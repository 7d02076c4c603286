/**
 * The contract of an engine. An engine places worker processes somewhere and hands back a link for each: a duplex channel
 * of opaque frames. It never sees a task: queueing, retries, timeouts, crash recovery and ordering exist once, in the
 * executor, and so behave the same on every engine. `manyworlds/testing` checks an engine against this contract.
 */
export interface RuntimeEngine {
  readonly apiVersion: 1
  readonly name: string
  /** The most workers that can be placed at once, if that is known; more are asked for at most once, with one warning. */
  readonly maxWorkers?: number
  /** More machines may come, perhaps of another kind: `maxWorkers` is no last word. */
  readonly elastic?: boolean
  /** Whether a worker with these labels is there, or is being started in the place of one that has ended. */
  offers?(labels: readonly string[]): boolean
  /**
   * Resolves when the request is accepted; rejects when it can never be met. Links arrive through `events`, also later ones:
   * the engine keeps `placement.workers` of them alive, and replaces one whose process ends, until `stop`.
   */
  start(placement: Placement, events: EngineEvents, signal: AbortSignal): Promise<void>
  /** From now on keep this many workers. Growing is at once; shrinking is the executor's to finish, by `kill` on idle links. */
  scale?(workers: number): Promise<void>
  /**
   * Brings code to where the workers are, before they are told of it: to the hosts that there are, and to those that come
   * later. An engine without this has workers that see the driver's files.
   */
  publish?(bundle: CodeBundle): Promise<void>
  /**
   * Brings bytes to where the workers are: to the hosts that there are before it resolves, and to those that come later
   * before their workers start, until `dropBlob`. Workers find them as a file: see MANYWORLDS_BLOBS in
   * docs/writing-an-engine.md. Called after `start`, perhaps before that has resolved. If it rejects, or if the engine does
   * not have it, workers get the bytes over their links.
   */
  putBlob?(blob: BlobContent): Promise<void>
  /** Nobody needs these bytes any more. */
  dropBlob?(sha256: string): Promise<void>
  /** Ends all workers and whatever they started, and removes what it has stored. Resolves when they are gone. */
  stop(): Promise<void>
  /** Whether the engine's handles keep the driver's process alive: true while there is work, false when the pool is idle. */
  keepAlive?(alive: boolean): void
}

/** What to start. The engine adds nothing of its own to the command but a way to carry frames. */
export interface Placement {
  /** How many workers to begin with. */
  readonly workers: number
  /** The run that the workers are started for, for names that people read; they may serve others later. */
  readonly run?: string
  /** The module that a worker process runs: `node [execArgv] workerEntry`. It speaks frames on fd 3, its watchdog on fd 4. */
  readonly workerEntry: string
  readonly execArgv: readonly string[]
  /** The driver's working directory, which is also a worker's. */
  readonly cwd: string
  /** The whole environment of a worker, not additions to one; it also tells the worker that it is one. */
  readonly env: Readonly<Record<string, string>>
  /** What a worker prints outside of any task. */
  readonly output: 'drop' | 'show'
  /** For workers on another machine, which has a folder, flags and an environment of its own: what the run adds to those. */
  readonly elsewhere: {
    readonly execArgv: readonly string[]
    readonly env: Readonly<Record<string, string>>
  }
}

/** Code to be run: a folder's content, named by its hash. A worker looks for it by that name. */
export interface CodeBundle {
  readonly sha256: string
  /** The module to import. */
  readonly code: Uint8Array
  /** Files beside it. */
  readonly files: readonly { readonly path: string; readonly bytes: Uint8Array }[]
}

/** Bytes that never change, named by their hash. */
export interface BlobContent {
  /** In hexadecimal digits. */
  readonly sha256: string
  readonly bytes: Uint8Array
}

export interface EngineEvents {
  /** A worker process is there; its frames may already be on their way. */
  link(link: WorkerLink): void
  /** This worker's place is going away: it is given nothing more, and ended when it is done with what it has. */
  retire(link: WorkerLink, reason: string): void
  /** `maxWorkers` has grown. */
  roomier(): void
  /** No more workers can be had, for this reason; those that live go on. */
  failed(error: Error): void
  /** One line for the user: waiting for resources, fewer workers than asked for. */
  notice(line: string): void
}

export interface WorkerLink {
  readonly id: string
  /** Counts the processes that had this place before; frames of an older one never come through a newer link. */
  readonly generation: number
  readonly info: WorkerInfo
  /**
   * False: wait for drain before sending more. The frame is taken all the same. Urgent frames are sent also while others
   * wait; whatever `send` answers to those, drain must come, once, unless the link closes.
   */
  send(frame: Uint8Array): boolean
  onDrain(listener: () => void): void
  onFrame(listener: (frame: Uint8Array) => void): void
  /** Stops and restarts the flow of incoming frames. */
  pause(): void
  resume(): void
  /** Resolves when the process is gone, after its last frame was delivered. Never rejects. */
  readonly closed: Promise<WorkerExit>
  /** A request to end the process at once, with all that it started. Nobody waits for it: an outcome that comes later is fenced. */
  kill(): void
  /** For how long what is sent has arrived without a break, where that is not sure. */
  steadyMs?(): number
}

export interface WorkerInfo {
  readonly host: string
  readonly pid?: number
  readonly labels?: readonly string[]
  /** Workers of one place are on one machine, and equally fast. Default: the host. */
  readonly place?: string
}

export interface WorkerExit {
  readonly code: number | null
  readonly signal: string | null
  /** Why, if the engine knows more than the process told: a lost node, no heartbeat. */
  readonly reason?: string
  /** Its place is gone, and it with it: nobody in it is to blame. */
  readonly placeLost?: boolean
  /** What the worker's watchdog said on fd 4 before it ended the process. */
  readonly lastWords?: string
  /** The end of what the process printed on stderr. */
  readonly stderr?: string
}

/** A class that makes an engine, for `cls` of a RunConfig. */
export type RuntimeEngineClass = new () => RuntimeEngine
