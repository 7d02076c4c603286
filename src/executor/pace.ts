/** Weight of the newest task in a mean. */
const NEWEST = 0.1
/** The duration of shorter tasks depends more on the connection than on the machine. */
const MEASURABLE_MS = 2
const MOST = 16
/** How fast the best pace decays per task, in case its machine is gone or has slowed down. */
const FORGET = 1.0005

/** How long tasks take on one machine, relative to tasks of the same agent everywhere. */
export class Pace {
  readonly #paces: Paces
  ratio = 1

  constructor(paces: Paces) {
    this.#paces = paces
  }

  /** How many times slower than the fastest machine, as a whole number. */
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

/** The paces of all machines. With only one there is nothing to compare. */
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
