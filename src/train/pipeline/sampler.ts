import { randomFrom } from '../../random.ts'
import { log } from '../exact-math.ts'

/** Everything the next draws depend on. Plain data, because it is stored with each update. */
export interface SamplerState {
  /** The number of complete passes over the tasks, and the position in the current pass. */
  readonly pass: number
  readonly at: number
  /** The tasks that the update in which the pass began had before it; omitted if there are none. */
  readonly carried?: readonly string[]
  /** The next update to draw for; plans may exist for more updates than were trained on. */
  readonly update: number
  /** With a curriculum: for each task, how often it was tried and solved. */
  readonly seen?: Readonly<Record<string, readonly [tried: number, solved: number]>>
}

/**
 * Selects the tasks of an update. Every update is full, unless there are fewer tasks, and has each task once. Without a
 * curriculum, it passes through all tasks in an order that is reshuffled for each pass; an update may span two passes,
 * because a small one would move the policy as far as a full one, with more noise. With a curriculum,
 * tasks are drawn without replacement with weights p(1 − p), where p is the smoothed success rate: tasks that are
 * solved sometimes teach most. The fraction `floor` of the draws is uniform, because a task that failed eight times may
 * still be solved one time in ten; no task is ever excluded.
 */
export class Sampler {
  readonly #tasks: readonly string[]
  readonly #seed: number
  readonly #floor: number | undefined
  readonly #seen = new Map<string, [tried: number, solved: number]>()
  #pass = 0
  #at = 0
  #carried: readonly string[] = []
  #update = 0
  #order: readonly string[] | undefined

  constructor(tasks: readonly string[], seed: number, floor: number | undefined, state?: SamplerState) {
    this.#tasks = tasks
    this.#seed = seed
    this.#floor = floor
    if (state === undefined) return
    this.#pass = state.pass
    this.#at = state.at
    this.#carried = state.carried ?? []
    this.#update = state.update
    for (const [task, [tried, solved]] of Object.entries(state.seen ?? {})) this.#seen.set(task, [tried, solved])
  }

  draw(update: number, count: number): string[] {
    this.#update = update + 1
    return this.#floor === undefined ? this.#next(count) : this.#weighted(update, count, this.#floor)
  }

  /** Skips an update whose tasks were drawn in an earlier session, possibly after the stored state was saved. */
  skip(update: number, tasks: readonly string[]): void {
    if (update < this.#update) return
    this.#update = update + 1
    if (this.#floor === undefined) this.#next(tasks.length)
  }

  /** Records the results of a task: how often it was tried, and how often solved. */
  recordResults(task: string, tried: number, solved: number): void {
    if (this.#floor === undefined) return
    const [before, solvedBefore] = this.#seen.get(task) ?? [0, 0]
    this.#seen.set(task, [before + tried, solvedBefore + solved])
  }

  state(): SamplerState {
    const carried = this.#carried.length > 0 ? { carried: this.#carried } : {}
    const position = { pass: this.#pass, at: this.#at, ...carried, update: this.#update }
    return this.#floor === undefined ? position : { ...position, seen: Object.fromEntries(this.#seen) }
  }

  #next(count: number): string[] {
    const drawn: string[] = []
    const wanted = Math.min(count, this.#tasks.length)
    while (drawn.length < wanted) {
      this.#order ??= this.#orderOfPass()
      const taken = this.#order.slice(this.#at, this.#at + wanted - drawn.length)
      drawn.push(...taken)
      this.#at += taken.length
      if (this.#at < this.#order.length) break
      this.#pass++
      this.#at = 0
      this.#carried = drawn.length < wanted ? [...drawn] : []
      this.#order = undefined
    }
    return drawn
  }

  /** Tasks that the update already has come last. */
  #orderOfPass(): readonly string[] {
    const order = shuffled(this.#tasks, this.#random(this.#pass))
    const carried = new Set(this.#carried)
    return [...order.filter((task) => !carried.has(task)), ...order.filter((task) => carried.has(task))]
  }

  /** Takes the tasks with the largest u^(1 / weight), which is equivalent to weighted draws without replacement. */
  #weighted(update: number, count: number, floor: number): string[] {
    const random = this.#random(update)
    const variances = this.#tasks.map((task) => {
      const [tried, solved] = this.#seen.get(task) ?? [0, 0]
      const rate = (solved + 1) / (tried + 2)
      return rate * (1 - rate)
    })
    const sum = variances.reduce((total, variance) => total + variance, 0)
    const keys = variances.map((variance) => {
      const weight = (1 - floor) * (variance / sum) + floor / variances.length
      return log(1 - random()) / weight
    })
    const indexes = [...keys.keys()].sort((a, b) => keys[b]! - keys[a]! || a - b)
    return indexes.slice(0, count).map((index) => this.#tasks[index]!)
  }

  #random(visit: number): () => number {
    return randomFrom({ seed: this.#seed, purpose: 'tasks', stream: '', task: '', visit, rollout: 1 })
  }
}

/** Fisher-Yates shuffle. */
export function shuffled<T>(list: readonly T[], random: () => number): T[] {
  const result = [...list]
  for (let i = result.length - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1))
    ;[result[i], result[j]] = [result[j]!, result[i]!]
  }
  return result
}
