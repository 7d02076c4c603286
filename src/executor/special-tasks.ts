import { Deque } from '../deque.ts'
import type { Fleet } from './fleet.ts'
import type { Run } from './run.ts'
import type { TaskEntry } from './task-entry.ts'
import type { WorkerHandle } from './worker-handle.ts'

interface Hooks {
  /** `group`: how many suspects go to this worker together; 0: the task is no suspect. */
  give(worker: WorkerHandle, entry: TaskEntry, group: number): void
  /** No worker has, or will have, the labels that the task requires. */
  unmet(entry: TaskEntry): void
  /** No worker has them now; one may come. */
  waits(entry: TaskEntry): void
}

/** Tasks that cannot go to just any worker: suspects of a crash, and those that require a label. */
export class SpecialTasks {
  readonly #fleet: Fleet
  readonly #hooks: Hooks
  /** Suspects, each group to be run apart from other tasks. A group of one proves guilt or innocence. */
  #groups: TaskEntry[][] = []
  /** Tasks that require labels, by their labels. */
  readonly #picky = new Map<string, Deque<TaskEntry>>()

  constructor(fleet: Fleet, hooks: Hooks) {
    this.#fleet = fleet
    this.#hooks = hooks
  }

  get waiting(): number {
    let waiting = this.#groups.length
    for (const queue of this.#picky.values()) waiting += queue.length
    return waiting
  }

  /** Some tasks require labels that no present worker has. */
  get stuck(): boolean {
    return this.#picky.size > 0
  }

  of(run: Run): TaskEntry[] {
    const picky = [...this.#picky.values()].flatMap((queue) => [...queue])
    return [...this.#groups.flat(), ...picky].filter((entry) => entry.run === run)
  }

  /** These were together in a worker that crashed: they are run again in halves. */
  suspect(entries: readonly TaskEntry[]): void {
    const plain = entries.filter(({ options }) => options.requires === undefined)
    const half = Math.ceil(plain.length / 2)
    for (const group of [plain.slice(0, half), plain.slice(half)]) if (group.length > 0) this.#groups.push(group)
    // These can only run on workers with their labels.
    for (const entry of entries) if (entry.options.requires !== undefined) this.#groups.push([entry])
  }

  runAlone(entry: TaskEntry): void {
    this.#groups.push([entry])
  }

  require(entry: TaskEntry): void {
    const labels = JSON.stringify(entry.options.requires)
    let queue = this.#picky.get(labels)
    if (!queue) this.#picky.set(labels, (queue = new Deque()))
    queue.push(entry)
    if (!entry.parent) entry.run.aside++
  }

  /** Returns how many tasks that require labels have left: given to a worker, or answered. */
  place(): number {
    if (this.#groups.length > 0) this.#placeGroups()
    return this.#picky.size > 0 ? this.#placePicky() : 0
  }

  /** Each group gets an empty worker. At most half of the workers are emptied for groups, so that other tasks go on. */
  #placeGroups(): void {
    this.#dropSettled()
    const { workers } = this.#fleet
    let reserved = 0
    const most = Math.max(1, workers.size >> 1)
    for (const worker of workers) {
      if (this.#groups.length === 0) break
      if (worker.state !== 'ready' || worker.spare || worker.careful) continue
      const group = this.#groups.findIndex((entries) => entries.every((entry) => canRun(worker, entry)))
      if (group < 0) {
        if (worker.reserved) this.#reserve(worker, false)
        continue
      }
      if (worker.leases.size === 0 || this.#mustDo(worker, group)) this.#giveGroup(worker, group)
      else if (worker.load > 0 && (worker.reserved || reserved < most)) {
        reserved++
        this.#reserve(worker, true)
      }
    }
    this.#dropUnmet()
    // No group is left: workers that were being emptied for one are free again.
    if (this.#groups.length === 0) for (const worker of workers) if (worker.reserved) this.#reserve(worker, false)
  }

  /** Only tasks that wait for sub-tasks are there. They may crash the worker, too, so an empty worker would be better. */
  #mustDo(worker: WorkerHandle, group: number): boolean {
    if (worker.load > 0 || worker.reserved) return worker.load === 0
    const entries = this.#groups[group]!
    return ![...this.#fleet.workers].some(
      (other) => canBecomeEmpty(other) && entries.every((entry) => canRun(other, entry)),
    )
  }

  #reserve(worker: WorkerHandle, reserved: boolean): void {
    worker.reserved = reserved
    this.#fleet.refresh(worker)
  }

  /** Answers suspects whose labels no worker has any more. */
  #dropUnmet(): void {
    for (const group of [...this.#groups]) {
      const [entry] = group as [TaskEntry]
      const { requires } = entry.options
      if (requires === undefined || this.#fleet.offers(requires)) continue
      if ([...this.#fleet.workers].some((worker) => worker.hasLabels(requires))) continue
      this.#groups.splice(this.#groups.indexOf(group), 1)
      this.#hooks.unmet(entry)
    }
  }

  /** A suspect may be cancelled while it waits. An empty group must not use up a worker's turn: there may be no other. */
  #dropSettled(): void {
    const live = this.#groups.map((entries) => entries.filter((entry) => !entry.settled))
    this.#groups = live.filter((entries) => entries.length > 0)
  }

  #giveGroup(worker: WorkerHandle, index: number): void {
    const group = this.#groups.splice(index, 1)[0]!
    this.#reserve(worker, false)
    worker.flush()
    worker.careful = true
    for (const entry of group) this.#hooks.give(worker, entry, group.length)
    worker.flush()
  }

  #placePicky(): number {
    let left = 0
    for (const [labels, queue] of this.#picky) {
      const { requires } = queue.peek()!.options
      const able = [...this.#fleet.workers].filter((worker) => worker.hasLabels(requires!))
      const mayCome = able.length > 0 || this.#fleet.offers(requires!)
      for (let entry = queue.peek(); entry; entry = queue.peek()) {
        const free = able.filter((worker) => worker.slot >= 0).sort((a, b) => a.load - b.load)[0]
        if (!entry.settled && !free && mayCome) {
          if (able.length === 0) this.#hooks.waits(entry)
          break
        }
        queue.shift()
        left++
        if (!entry.parent) entry.run.aside--
        if (entry.settled) continue
        if (free) this.#hooks.give(free, entry, 0)
        else this.#hooks.unmet(entry)
      }
      if (queue.length === 0) this.#picky.delete(labels)
    }
    return left
  }
}

const canBecomeEmpty = ({ state, spare, leases, load }: WorkerHandle) =>
  !spare && (state === 'starting' || (state === 'ready' && (leases.size === 0 || load > 0)))

const canRun = (worker: WorkerHandle, { options }: TaskEntry) => worker.hasLabels(options.requires ?? [])
