import type { FoundTraining } from '../../store/trainings/find-training.ts'
import { StoredTraining } from '../../store/trainings/stored-training.ts'
import { trainingDetails } from '../read/training.ts'
import type { Feed, FeedEvent } from './feed.ts'
import { Pace } from './pace.ts'

/** A training, whenever it has changed. */
export class TrainingFeed implements Feed {
  readonly #found: FoundTraining
  readonly #pace = new Pace()
  #known = ''

  constructor(found: FoundTraining) {
    this.#found = found
  }

  async *next(): AsyncGenerator<FeedEvent> {
    if (!this.#pace.isTime) return
    // The overview is fast to read, and it changes whenever anything else does.
    using training = StoredTraining.at(this.#found)
    const text = JSON.stringify([training.overview(), training.plans().length])
    if (text === this.#known) return
    this.#known = text
    yield { event: { kind: 'training', details: await this.#pace.measure(() => trainingDetails(this.#found)) } }
  }
}
