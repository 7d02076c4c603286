/**
 * The contract of an engine. An engine places worker processes somewhere and hands back a link for each: a duplex channel
 * of opaque frames. It never sees a task: queueing, retries, timeouts, crash recovery and ordering exist once, in the
 * executor, and so behave the same on every engine. `manyworlds/testing` checks an engine against this contract.
 */
export interface RuntimeEngine {
  readonly apiVersion: 1
  readonly name: string
  /** The most workers that can be placed at once, if known. If more are requested, the user is warned once. */
  readonly maxWorkers?: number
  /** More machines may join, also with other labels: `maxWorkers` may grow. */
  readonly elastic?: boolean
  /** Whether a worker with these labels exists or is being restarted. */
  offers?(labels: readonly string[]): boolean
  /**
   * Resolves when the request is accepted; rejects when it can never be met. Links arrive through `events`. Until `stop`, the
   * engine keeps `placement.workers` workers alive and replaces those whose process ends.
   */
  start(placement: Placement, events: EngineEvents, signal: AbortSignal): Promise<void>
  /** From now on keep this many workers. New ones are started at once; to shrink, the executor calls `kill` on idle links. */
  scale?(workers: number): Promise<void>
  /**
   * Brings code to the workers' machines before workers are told of it: to the present hosts and to those that join later.
   * Without this method, workers must see the driver's files.
   */
  publish?(bundle: CodeBundle): Promise<void>
  /**
   * Brings bytes to the workers' machines: to the present hosts before it resolves, and to hosts that join later before their
   * workers start, until `dropBlob`. Workers find them as a file: see MANYWORLDS_BLOBS in docs/writing-an-engine.md. Called
   * after `start`, perhaps before that has resolved. If it rejects or is missing, workers get the bytes over their links.
   */
  putBlob?(blob: BlobContent): Promise<void>
  /** These bytes are no longer needed. */
  dropBlob?(sha256: string): Promise<void>
  /** Ends all workers and the processes they started, and removes stored files. Resolves when they are gone. */
  stop(): Promise<void>
  /** Whether the engine's handles keep the driver's process alive: true while there is work, false while the pool is idle. */
  keepAlive?(alive: boolean): void
}

/** What to start. The engine adds nothing to the command except the transport of frames. */
export interface Placement {
  /** The initial number of workers. */
  readonly workers: number
  /** The run that the workers are started for, for display only; they may serve other runs later. */
  readonly run?: string
  /** The module that a worker process runs: `node [execArgv] workerEntry`. Frames use fd 3, its watchdog fd 4. */
  readonly workerEntry: string
  readonly execArgv: readonly string[]
  /** The working directory of the driver and of its workers. */
  readonly cwd: string
  /** The complete environment of a worker. It includes the variable that marks the process as a worker. */
  readonly env: Readonly<Record<string, string>>
  /** What happens to output that a worker prints outside of any task. */
  readonly output: 'drop' | 'show'
  /** For workers on another machine, which has its own folder, flags and environment: what the run adds to them. */
  readonly remote: {
    readonly execArgv: readonly string[]
    readonly env: Readonly<Record<string, string>>
  }
}

/** Code to run: the content of a folder, named by its hash. Workers look for it by that name. */
export interface CodeBundle {
  readonly sha256: string
  /** The module to import. */
  readonly code: Uint8Array
  /** Files beside it. */
  readonly files: readonly { readonly path: string; readonly bytes: Uint8Array }[]
}

/** Immutable bytes, named by their hash. */
export interface BlobContent {
  /** Hexadecimal. */
  readonly sha256: string
  readonly bytes: Uint8Array
}

/** What an engine tells the executor. */
export interface EngineEvents {
  /** A worker process has started; its first frames may already be on their way. */
  link(link: WorkerLink): void
  /** This worker's machine is going away: it gets no new tasks, and is ended when its tasks are done. */
  retire(link: WorkerLink, reason: string): void
  /** `maxWorkers` has grown. */
  capacityGrew(): void
  /** No more workers can be placed, for this reason; live workers go on. */
  failed(error: Error): void
  /** One line for the user: waiting for resources, fewer workers than asked for. */
  notice(line: string): void
}

/** The channel to one worker process. */
export interface WorkerLink {
  readonly id: string
  /** Counts the processes that had this id before. Frames of an older process never come through a newer link. */
  readonly generation: number
  readonly info: WorkerInfo
  /**
   * Always accepts the frame. If it returns false, the executor waits for the drain listener before it sends more; urgent frames
   * are sent even then. Whatever `send` returns for those, the drain listener must be called once, unless the link closes.
   */
  send(frame: Uint8Array): boolean
  onDrain(listener: () => void): void
  onFrame(listener: (frame: Uint8Array) => void): void
  /** Stops and restarts the flow of incoming frames. */
  pause(): void
  resume(): void
  /** Resolves when the process is gone, after its last frame was delivered. Never rejects. */
  readonly closed: Promise<WorkerExit>
  /** Asks for the end of the process and of all that it started. Returns at once; later outcomes of the worker are ignored. */
  kill(): void
  /** For how long the connection has been up without a break, if connections can be lost. */
  connectedForMs?(): number
}

/** Where a worker runs. */
export interface WorkerInfo {
  readonly host: string
  readonly pid?: number
  readonly labels?: readonly string[]
  /** Workers with the same place are on one machine and equally fast. Default: the host. */
  readonly place?: string
}

/** How a worker process ended. */
export interface WorkerExit {
  readonly code: number | null
  readonly signal: string | null
  /** The reason, if the engine knows one: a lost node, no heartbeat. */
  readonly reason?: string
  /** The machine was lost: no task of this worker is to blame. */
  readonly placeLost?: boolean
  /** The report of the worker's watchdog on fd 4 before it ended the process. */
  readonly lastWords?: string
  /** The end of what the process printed on stderr. */
  readonly stderr?: string
}

/** A class that makes an engine, for `cls` of a RunConfig. */
export type RuntimeEngineClass = new () => RuntimeEngine
