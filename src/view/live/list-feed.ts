import type { Place } from '../read/place.ts'
import { runList } from '../read/run-list.ts'
import type { Feed, FeedEvent } from './feed.ts'
import { Pace } from './pace.ts'

/** The list of runs, whenever it has changed. */
export class ListFeed implements Feed {
  readonly #place: Place
  readonly #pace = new Pace()
  #known = ''

  constructor(place: Place) {
    this.#place = place
  }

  async *next(signal: AbortSignal): AsyncGenerator<FeedEvent> {
    if (!this.#pace.isTime) return
    const list = await this.#pace.measure(() => runList(this.#place, signal))
    const text = JSON.stringify(list)
    if (text === this.#known) return
    this.#known = text
    yield { event: { kind: 'runs', list } }
  }
}
