import { PagedRun, type Positions } from '../store/paged/paged-run.ts'
import { Causes } from '../text/failure-causes.ts'
import { Pulses } from './live/pulse.ts'
import { OpenStores } from './read/open-stores.ts'
import type { Place } from './read/place.ts'

/** A run that a request reads. Dispose of it when done. */
export interface OpenRun extends Disposable {
  readonly run: PagedRun
  readonly causes: Causes
}

/** The state that all requests of a viewer share. */
export class Viewer implements Disposable {
  readonly place: Place
  readonly stores = new OpenStores()
  readonly pulses = new Pulses(this.stores)
  readonly #causes = new Map<string, Causes>()
  /** Where the latest stream of each run's tasks began. */
  readonly #streamed = new Map<string, Positions>()

  constructor(place: Place) {
    this.place = place
  }

  openRun(id: string): OpenRun {
    const found = this.place.run(id)
    const lease = this.stores.take(found.path)
    try {
      const run = new PagedRun(lease.db, found)
      return { run, causes: this.#causesOf(run), [Symbol.dispose]: () => lease[Symbol.dispose]() }
    } catch (error) {
      lease[Symbol.dispose]()
      throw error
    }
  }

  /** Keys of causes must not change while a page may refer to them. */
  #causesOf(run: PagedRun): Causes {
    const key = keyOf(run)
    let causes = this.#causes.get(key)
    if (causes === undefined) this.#causes.set(key, (causes = new Causes()))
    return causes
  }

  /** Events without a cursor begin where the latest stream of tasks began. */
  streaming(run: PagedRun): void {
    this.#streamed.set(keyOf(run), run.positions())
  }

  streamedFrom(run: PagedRun): Positions {
    return this.#streamed.get(keyOf(run)) ?? run.positions()
  }

  [Symbol.dispose](): void {
    this.pulses[Symbol.dispose]()
    this.stores[Symbol.dispose]()
  }
}

const keyOf = ({ path, run, createdAt }: PagedRun) => `${path}\0${run}\0${createdAt}`
