import { availableParallelism, freemem } from 'node:os'
import { ManyworldsError } from '../../errors.ts'
import { BLOBS_VARIABLE } from '../../worker/role.ts'
import { BlobFiles } from '../blob-files.ts'
import { noCompileCache } from '../compile-cache.ts'
import { sweepNow } from '../ended-workers.ts'
import type { BlobContent, EngineEvents, Placement, RuntimeEngine, WorkerExit } from '../engine.ts'
import { type ProcessLink, type ShowOutput, startWorkerProcess } from '../worker-process.ts'

const BEAT_CHECK_MS = 1000
/** Checks without a heartbeat before a process counts as hung (SIGSTOP, swapping). Checks, not time, so that a laptop's sleep does not count. */
const BEATS_MISSED = 20
/** The engine gives up after this many workers in a row that ended before their first frame, if no other worker runs. */
const START_FAILURES = 3
const RESTART_MS = 50
/** The least memory that a worker needs; limits how many can be placed here. */
const WORKER_MB = 64

/** The most worker processes that make sense on this machine. */
export const localMaxWorkers = (): number =>
  Math.max(1, Math.min(16 * availableParallelism() + 16, Math.floor(freemem() / 2 ** 20 / WORKER_MB)))

/**
 * Workers as child processes on this machine: the engine of a run that names none.
 *
 * @example
 * await Runners.runTask(tasks, { engineName: 'local', workerNum: 4 })
 */
export class LocalRuntime implements RuntimeEngine {
  readonly apiVersion = 1
  readonly name = 'local'
  readonly maxWorkers: number = localMaxWorkers()
  readonly #links = new Map<number, ProcessLink>()
  readonly #missed = new Map<ProcessLink, number>()
  readonly #show: ShowOutput | undefined
  readonly #blobs = new BlobFiles()
  #placement: Placement | undefined
  #events: EngineEvents | undefined
  #wanted = 0
  #generation = 0
  #failures = 0
  #alive = true
  #stopped = false
  #beats: NodeJS.Timeout | undefined

  /** `show`: receives lines that workers print outside of any task. Default: stderr, each line behind the worker's id. */
  constructor({ show }: { show?: ShowOutput } = {}) {
    this.#show = show
  }

  async start(placement: Placement, events: EngineEvents, signal: AbortSignal): Promise<void> {
    if (process.platform === 'win32')
      throw new ManyworldsError(
        'ENGINE_FAILED',
        'the local engine needs process groups, which Windows does not have; use WSL',
      )
    // A host uses this engine for its workers and has its own folder for them.
    this.#placement = { ...placement, env: { [BLOBS_VARIABLE]: this.#blobs.path, ...placement.env } }
    this.#events = events
    signal.addEventListener('abort', () => void this.stop(), { once: true })
    this.#beats = setInterval(() => this.#checkBeats(), BEAT_CHECK_MS)
    this.#beats.unref()
    await this.scale(placement.workers)
  }

  async scale(workers: number): Promise<void> {
    this.#wanted = Math.min(workers, this.maxWorkers)
    this.#failures = 0
    this.#fill()
  }

  putBlob(blob: BlobContent): Promise<void> {
    return this.#blobs.put(blob)
  }

  dropBlob(sha256: string): Promise<void> {
    return this.#blobs.drop(sha256)
  }

  /**
   * The live workers, for the host on another machine.
   *
   * @internal
   */
  get links(): readonly ProcessLink[] {
    return [...this.#links.values()]
  }

  keepAlive(alive: boolean): void {
    this.#alive = alive
    for (const link of this.#links.values()) link.keepAlive(alive)
  }

  async stop(): Promise<void> {
    this.#stopped = true
    clearInterval(this.#beats)
    const links = [...this.#links.values()]
    for (const link of links) link.kill()
    await Promise.all(links.map((link) => link.closed))
    sweepNow()
    await this.#blobs.remove()
  }

  /** One worker has started, so others can. */
  #anyWorks(): boolean {
    return [...this.#links.values()].some((link) => link.spoke)
  }

  /** Starts the missing workers, with the lowest free numbers. */
  #fill(): void {
    if (this.#stopped) return
    for (let place = 0; place < this.#wanted; place++) if (!this.#links.has(place)) this.#startOne(place)
  }

  #startOne(place: number): void {
    const link = startWorkerProcess(this.#placement!, `local-${place}`, this.#generation++, this.#show)
    const slower = noCompileCache()
    if (slower !== undefined) this.#events!.notice(slower)
    this.#links.set(place, link)
    this.#missed.set(link, 0)
    link.keepAlive(this.#alive)
    void link.closed.then((exit) => {
      this.#links.delete(place)
      this.#missed.delete(link)
      if (this.#stopped) return
      if (link.spoke) this.#failures = 0
      else if (++this.#failures >= START_FAILURES && !this.#anyWorks()) {
        this.#wanted = 0
        this.#events!.failed(startFailure(exit))
        return
      }
      setTimeout(() => this.#fill(), link.spoke ? 0 : RESTART_MS)
    })
    this.#events!.link(link)
  }

  #checkBeats(): void {
    for (const [link, missed] of this.#missed) {
      const silent = link.takeBeats() > 0 ? 0 : missed + 1
      this.#missed.set(link, silent)
      if (silent > BEATS_MISSED) link.killFor(`no heartbeat for ${Math.round((silent * BEAT_CHECK_MS) / 1000)} s`)
    }
  }
}

function startFailure(exit: WorkerExit): ManyworldsError {
  const how = exit.reason ?? (exit.signal === null ? `exit code ${exit.code}` : `signal ${exit.signal}`)
  return new ManyworldsError(
    'WORKER_START_FAILED',
    `worker processes end before they are ready (${how}, ${START_FAILURES} times in a row)${exit.stderr === undefined ? '' : `; the last one said:\n${exit.stderr}`}`,
  )
}
