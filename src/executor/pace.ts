/** Weight of the newest task in a mean. */
const NEWEST = 0.1
/** Tasks shorter than this say more about the way to a worker than about its machine. */
const MEASURABLE_MS = 2
const MOST = 16
/** By so much the best pace is forgotten with each task, should its machine be gone or slow down. */
const FORGET = 1.0005

/** How long tasks take at one place, in proportion to how long tasks of the same agent take on the whole. */
export class Pace {
  readonly #paces: Paces
  ratio = 1

  constructor(paces: Paces) {
    this.#paces = paces
  }

  /** A whole number: so many times as long as at the fastest place. */
  get weight(): number {
    return this.#paces.several ? Math.min(MOST, Math.max(1, Math.round(this.ratio / this.#paces.best))) : 1
  }

  note(runMs: number, agent: { meanMs: number }): void {
    agent.meanMs = agent.meanMs === 0 ? runMs : agent.meanMs + NEWEST * (runMs - agent.meanMs)
    if (!this.#paces.several || agent.meanMs < MEASURABLE_MS) return
    this.ratio += NEWEST * (runMs / agent.meanMs - this.ratio)
    this.#paces.best = Math.min(this.#paces.best * FORGET, this.ratio)
  }
}

/** The paces of all places. With one place alone there is nothing to compare. */
export class Paces {
  readonly #byPlace = new Map<string, Pace>()
  best = 1

  of(place: string): Pace {
    let pace = this.#byPlace.get(place)
    if (pace === undefined) this.#byPlace.set(place, (pace = new Pace(this)))
    return pace
  }

  get several(): boolean {
    return this.#byPlace.size > 1
  }
}
