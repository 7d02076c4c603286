import { randomFrom } from '../../random.ts'
import { log } from '../exact-math.ts'

/** What the next draws depend on. Plain data: it is stored with each update. */
export interface SamplerState {
  /** How often all tasks have been gone through, and how far this time. */
  readonly pass: number
  readonly at: number
  /** The update that is drawn for next: plans may have been made for more updates than were learned from. */
  readonly update: number
  /** For a curriculum: by task, how often it was tried and how often solved. */
  readonly seen?: Readonly<Record<string, readonly [tried: number, solved: number]>>
}

/**
 * Chooses the tasks of an update. Without a curriculum all tasks are gone through, in an order that the seed shuffles anew each time; an
 * update never has tasks of two passes, so the last one of a pass may have fewer. With a curriculum, tasks are drawn without putting them back,
 * by p(1 − p) with p the smoothed rate of success: those that are sometimes solved teach most. A share of the draws, the floor, is by chance
 * alone: a task that failed eight times may well be solved one time in ten, so none is retired.
 */
export class Sampler {
  readonly #tasks: readonly string[]
  readonly #seed: number
  readonly #floor: number | undefined
  readonly #seen = new Map<string, [tried: number, solved: number]>()
  #pass = 0
  #at = 0
  #update = 0
  #order: readonly string[] | undefined

  constructor(tasks: readonly string[], seed: number, floor: number | undefined, state?: SamplerState) {
    this.#tasks = tasks
    this.#seed = seed
    this.#floor = floor
    if (state === undefined) return
    this.#pass = state.pass
    this.#at = state.at
    this.#update = state.update
    for (const [task, [tried, solved]] of Object.entries(state.seen ?? {})) this.#seen.set(task, [tried, solved])
  }

  /** The tasks of an update. */
  draw(update: number, count: number): string[] {
    this.#update = update + 1
    return this.#floor === undefined ? this.#next(count) : this.#weighted(update, count, this.#floor)
  }

  /** The tasks of this update were drawn in an earlier session, perhaps before the state was stored that this one began with. */
  skip(update: number, tasks: readonly string[]): void {
    if (update < this.#update) return
    this.#update = update + 1
    if (this.#floor === undefined) this.#next(tasks.length)
  }

  /** What came of a task: how often it was tried, and how often solved. */
  saw(task: string, tried: number, solved: number): void {
    if (this.#floor === undefined) return
    const [before, solvedBefore] = this.#seen.get(task) ?? [0, 0]
    this.#seen.set(task, [before + tried, solvedBefore + solved])
  }

  state(): SamplerState {
    const places = { pass: this.#pass, at: this.#at, update: this.#update }
    return this.#floor === undefined ? places : { ...places, seen: Object.fromEntries(this.#seen) }
  }

  #next(count: number): string[] {
    this.#order ??= shuffled(this.#tasks, this.#random(this.#pass))
    const drawn = this.#order.slice(this.#at, this.#at + count)
    this.#at += drawn.length
    if (this.#at === this.#order.length) {
      this.#pass++
      this.#at = 0
      this.#order = undefined
    }
    return drawn
  }

  /** The tasks with the largest u^(1 / weight): the same as drawing one after the other without putting back. */
  #weighted(update: number, count: number, floor: number): string[] {
    const random = this.#random(update)
    const hopes = this.#tasks.map((task) => {
      const [tried, solved] = this.#seen.get(task) ?? [0, 0]
      const rate = (solved + 1) / (tried + 2)
      return rate * (1 - rate)
    })
    const sum = hopes.reduce((total, hope) => total + hope, 0)
    const keys = hopes.map((hope) => {
      const weight = (1 - floor) * (hope / sum) + floor / hopes.length
      return log(1 - random()) / weight
    })
    const places = [...keys.keys()].sort((a, b) => keys[b]! - keys[a]! || a - b)
    return places.slice(0, count).map((place) => this.#tasks[place]!)
  }

  #random(visit: number): () => number {
    return randomFrom({ seed: this.#seed, purpose: 'tasks', stream: '', task: '', visit, rollout: 1 })
  }
}

/** Fisher and Yates. */
export function shuffled<T>(list: readonly T[], random: () => number): T[] {
  const result = [...list]
  for (let i = result.length - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1))
    ;[result[i], result[j]] = [result[j]!, result[i]!]
  }
  return result
}
