import { type Signal, signal } from '@preact/signals'
import type { RunFigures } from '../../../src/view/api.ts'
import type { Source } from '../source/source.ts'
import { type FigureKey, figureKeysOf } from './run-sort.ts'

/** The most requests at once. Each needs a scan of a run, and must not block the server. */
const AT_ONCE = 2
/** The figures of a run in progress are requested again, at most this often. */
const AGAIN_MS = 10_000

export interface Figures {
  readonly value?: RunFigures
  readonly isFailed?: boolean
}

interface Wanted {
  readonly figures: Signal<Figures>
  /** Changes when the run changes: its status and the number of its responses. */
  stamp: string
  loadedStamp: string | undefined
  loadedAt: number
  /** The number of visible rows that show it. */
  watchers: number
}

/** The shortest time between two notifications while the figures of many runs arrive. */
const TELL_MS = 500

/** Loads the figures of runs, a few at once, visible rows first. */
export class FiguresQueue {
  /** The columns that have a value in any run so far. */
  readonly filled = signal<ReadonlySet<FigureKey>>(new Set())
  /** Incremented while figures arrive, and when the last one has arrived. */
  readonly arrivals = signal(0)
  #telling: ReturnType<typeof setTimeout> | undefined

  readonly #source: Source
  readonly #runs = new Map<string, Wanted>()
  #waiting: string[] = []
  #going = 0

  constructor(source: Source) {
    this.#source = source
  }

  of(run: string): Signal<Figures> {
    return this.#wanted(run).figures
  }

  /** Undefined: not loaded. */
  peek(run: string): RunFigures | undefined {
    return this.#runs.get(run)?.figures.peek().value
  }

  /** Whether the figures of a run are loaded, or cannot be. */
  isDone(run: string): boolean {
    const { value, isFailed } = this.#runs.get(run)?.figures.peek() ?? {}
    return value !== undefined || isFailed === true
  }

  /** Marks a row as visible until the returned function is called. */
  watch(run: string, stamp: string): () => void {
    const wanted = this.#wanted(run)
    wanted.stamp = stamp
    wanted.watchers++
    const isDue = wanted.loadedStamp === undefined || Date.now() - wanted.loadedAt > AGAIN_MS
    if (wanted.loadedStamp !== stamp && isDue && !this.#waiting.includes(run)) this.#waiting.push(run)
    this.#next()
    return () => {
      wanted.watchers--
    }
  }

  #wanted(run: string): Wanted {
    let wanted = this.#runs.get(run)
    if (!wanted) {
      wanted = { figures: signal({}), stamp: '', loadedStamp: undefined, loadedAt: 0, watchers: 0 }
      this.#runs.set(run, wanted)
    }
    return wanted
  }

  #next(): void {
    // Rows that were scrolled out of view are requested when they are visible again.
    this.#waiting = this.#waiting.filter((run) => this.#wanted(run).watchers > 0)
    while (this.#going < AT_ONCE && this.#waiting.length > 0) void this.#load(this.#waiting.shift()!)
  }

  async #load(run: string): Promise<void> {
    const wanted = this.#wanted(run)
    this.#going++
    wanted.loadedStamp = wanted.stamp
    wanted.loadedAt = Date.now()
    try {
      const value = await this.#source.figures(run)
      wanted.figures.value = { value }
      const filled = new Set([...this.filled.peek(), ...figureKeysOf(value)])
      if (filled.size > this.filled.peek().size) this.filled.value = filled
    } catch {
      wanted.figures.value = { ...wanted.figures.value, isFailed: true }
    }
    this.#going--
    this.#next()
    this.#tell()
  }

  #tell(): void {
    const isLast = this.#going === 0
    if (!isLast && this.#telling !== undefined) return
    clearTimeout(this.#telling)
    this.#telling = setTimeout(
      () => {
        this.#telling = undefined
        this.arrivals.value++
      },
      isLast ? 0 : TELL_MS,
    )
  }
}
