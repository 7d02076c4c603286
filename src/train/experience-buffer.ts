import { ManyworldsError } from '../errors.ts'
import { randomFrom } from '../random.ts'
import type { RunFile } from '../store/run-file.ts'
import type { Trajectory } from '../trajectory/trajectory.ts'
import { type CheckedOptions, checkCount, checkedOptions, type ExperienceBufferOptions } from './buffer-options.ts'
import type { Added, BufferStats } from './buffer-stats.ts'
import { checkBetween } from './check-numbers.ts'
import { ClosedGroups } from './closed-groups.ts'
import type { ReturnsOf } from './decisions.ts'
import { drawDistinct } from './draw-distinct.ts'
import { type Experience, type ExperienceGroup, experienceOf, type ReturnsRule } from './experience.ts'
import { trainingReward } from './failed-rollouts.ts'
import type { HeldGroup } from './held-group.ts'
import { groupKey, OpenGroup } from './open-group.ts'
import { compareRollouts } from './rollout-order.ts'
import { trajectoriesInOrder } from './run-order.ts'

/**
 * Experience to learn from: a fixed number of trajectories; the oldest make room for the newest.
 *
 * - Groups stay together: rollouts of a task are sampled together and dropped together. A trajectory without a group is a group of its own.
 * - A group closes when all of its members were added, whether they were kept or not, or by `closeGroups`. Then its advantages are fixed and it can be sampled.
 * - A group that never closes is never sampled. It is dropped, and counted as `abandoned`, when it is the oldest and room is needed, or when more than `maxOpenGroups` are open.
 * - Each operation takes constant time per trajectory added, removed or returned, however many are held.
 * - A sample depends only on the seed, the number of earlier draws, and the held groups. `addBatch` and `addRun` sort their trajectories, so samples do not
 *   depend on which rollout finished first.
 *
 * @example
 * const buffer = await ExperienceBuffer.fromRun('last', { capacity: 50_000, failed: { penalize: 0.5 } })
 * buffer.computeReturns(0.99)
 * for (const { trajectory, advantage, returns } of buffer.sampleBatch(32)) …
 */
export class ExperienceBuffer {
  readonly #options: CheckedOptions
  /** By key, in the order in which they were opened. */
  readonly #open = new Map<string, OpenGroup>()
  readonly #closed: ClosedGroups
  readonly #added: Record<Added, number> = {
    held: 0,
    failed: 0,
    lost: 0,
    ungraded: 0,
    'held-out': 0,
    duplicate: 0,
    removed: 0,
  }
  readonly #splits: ReadonlySet<string | null>
  #size = 0
  #opened = 0
  #evicted = 0
  #abandoned = 0
  #draws: number
  #returns: ReturnsRule | undefined

  constructor(options: ExperienceBufferOptions = {}) {
    this.#options = checkedOptions(options)
    this.#closed = new ClosedGroups(this.#options.unpacked)
    this.#splits = new Set(this.#options.splits)
    this.#draws = this.#options.draws
  }

  /** A buffer with the trajectories of a run: an open run file, or anything `RunFile.open` accepts. */
  static async fromRun(run: RunFile | string, options: ExperienceBufferOptions = {}): Promise<ExperienceBuffer> {
    const buffer = new ExperienceBuffer(options)
    if (typeof run !== 'string') {
      await buffer.addRun(run)
      return buffer
    }
    const { RunFile } = await import('../store/run-file.ts')
    using file = RunFile.open(run)
    await buffer.addRun(file)
    return buffer
  }

  /** Trajectories held, including those of open groups. */
  get size(): number {
    return this.#size
  }

  /** Samples drawn so far: with the trajectories, all that is needed to resume sampling. */
  get draws(): number {
    return this.#draws
  }

  stats(): BufferStats {
    return {
      ...{ size: this.#size, groups: this.#closed.length, openGroups: this.#open.size, added: { ...this.#added } },
      ...{ evicted: this.#evicted, abandoned: this.#abandoned, packedBytes: this.#closed.packedBytes },
    }
  }

  /**
   * Adds a trajectory to its group. While a run is in progress, the store may report a group size that is too small:
   * set `groupSize`, or take trajectories from `ParallelTaskExecutor`, which knows it.
   */
  addTrajectory(trajectory: Trajectory): Added {
    return this.#add(trajectory, this.#options.groupSize ?? trajectory.group?.size ?? undefined)
  }

  /**
   * Adds trajectories in the order of `compareRollouts`, whatever order they are given in. Returns how many of them are
   * held.
   */
  addBatch(trajectories: Iterable<Trajectory>): number {
    let held = 0
    for (const trajectory of [...trajectories].sort(compareRollouts))
      if (this.addTrajectory(trajectory) === 'held') held++
    return held
  }

  /**
   * Adds the trajectories of a run, group by group. If the run has ended, its groups are closed, even if rollouts are
   * missing. If it is still in progress, only groups that reach `groupSize` are closed; add the run again later to get
   * the rest. Rollouts whose steps were removed to save space are left out and counted in `stats().added.removed`.
   * Returns how many are held.
   */
  async addRun(run: RunFile): Promise<number> {
    const isRunning = run.overview().status === 'running'
    let held = 0
    let last: string | undefined
    for await (const trajectory of trajectoriesInOrder(run, () => this.#added.removed++)) {
      const key = groupKey(trajectory)
      if (last !== key && last !== undefined && !isRunning) this.#closeKey(last)
      last = key
      if (this.#add(trajectory, isRunning ? this.#options.groupSize : undefined) === 'held') held++
    }
    if (last !== undefined && !isRunning) this.#closeKey(last)
    return held
  }

  /**
   * Closes open groups with the members they have: all of them, or those for which `which` returns true. Returns how
   * many were closed.
   */
  closeGroups(which: (group: { readonly id: string; readonly run: string | null }) => boolean = () => true): number {
    let closed = 0
    for (const group of [...this.#open.values()])
      if (which({ id: group.id, run: group.run })) {
        this.#close(group)
        closed++
      }
    return closed
  }

  /**
   * Whole groups, each at most once, until there are at least `size` trajectories or no groups are left; members of a
   * group are adjacent. Empty if no group is closed.
   */
  sampleBatch(size: number): Experience[] {
    checkCount('size', size, 1)
    const batch: Experience[] = []
    for (const group of this.#draw()) {
      batch.push(...experienceOf(group, this.#returns).members)
      if (batch.length >= size) break
    }
    return batch
  }

  /** This many groups, each at most once; fewer if there are not enough. */
  sampleGroups(count: number): ExperienceGroup[] {
    checkCount('count', count, 1)
    const groups: ExperienceGroup[] = []
    for (const group of this.#draw()) {
      groups.push(experienceOf(group, this.#returns))
      if (groups.length >= count) break
    }
    return groups
  }

  /** All closed groups, oldest first. */
  *groups(): Generator<ExperienceGroup, undefined> {
    const all = Array.from({ length: this.#closed.length }, (_, place) => this.#closed.at(place)!)
    for (const group of all) yield experienceOf(group, this.#returns)
  }

  /**
   * From now on, samples have `returns`, one per decision: `G[t] = r[t] + discount · G[t+1]`. They are computed when a
   * trajectory is sampled. `'grade'`: the trajectory's reward comes at its end, so reaching it in fewer steps gives a
   * higher return. `'steps'`: uses the rewards of the steps.
   */
  computeReturns(discount = 0.99, of: ReturnsOf = 'grade'): void {
    checkBetween('discount', discount, 0, 1)
    if (of !== 'grade' && of !== 'steps')
      throw new ManyworldsError('CONFIG_INVALID', `\`of\` must be 'grade' or 'steps'; it is '${of}'`)
    this.#returns = { discount, of }
  }

  #add(trajectory: Trajectory, size: number | undefined): Added {
    const added = this.#take(trajectory, trajectory.group === null ? 1 : size)
    this.#added[added]++
    return added
  }

  #take(trajectory: Trajectory, size: number | undefined): Added {
    if (!this.#splits.has(trajectory.split)) return 'held-out'
    const key = groupKey(trajectory)
    if (this.#closed.has(key) || this.#open.get(key)?.seen.has(trajectory.id)) return 'duplicate'
    const judgement = trainingReward(trajectory, this.#options.failed)
    this.#checkFits(trajectory, size ?? 0, this.#open.get(key))
    const group = this.#open.get(key) ?? this.#begin(trajectory, key)
    group.seen.add(trajectory.id)
    if (judgement.reward !== null) {
      while (this.#size >= this.#options.capacity) this.#makeRoom(group)
      group.members.push({ trajectory, reward: judgement.reward, failed: judgement.failed })
      this.#size++
    }
    if (size !== undefined && group.seen.size >= size) this.#close(group)
    return judgement.reward === null ? judgement.why : 'held'
  }

  #checkFits({ group }: Trajectory, size: number, known: OpenGroup | undefined): void {
    const { capacity } = this.#options
    if (Math.max(size, (known?.members.length ?? 0) + 1) > capacity)
      throw new ManyworldsError(
        'CONFIG_INVALID',
        `group '${group?.id}' has more than ${capacity} trajectories, and groups cannot be split; give the ExperienceBuffer a larger \`capacity\``,
      )
  }

  #begin(trajectory: Trajectory, key: string): OpenGroup {
    if (this.#open.size >= this.#options.maxOpenGroups) this.#abandon(this.#oldestOpen(undefined)!)
    const group = new OpenGroup(this.#opened++, key, trajectory)
    this.#open.set(key, group)
    return group
  }

  /** Drops the group that was opened first, closed or not, except the one that room is made for. */
  #makeRoom(needed: OpenGroup): void {
    const open = this.#oldestOpen(needed)
    const closed = this.#closed.at(0)
    if (open && (closed === undefined || open.order < closed.order)) this.#abandon(open)
    else this.#evict()
  }

  /** Examines at most two groups. */
  #oldestOpen(except: OpenGroup | undefined): OpenGroup | undefined {
    for (const group of this.#open.values()) if (group !== except) return group
    return undefined
  }

  #abandon(group: OpenGroup): void {
    this.#open.delete(group.key)
    this.#size -= group.members.length
    this.#abandoned += group.members.length
  }

  #evict(): void {
    const { size } = this.#closed.shift()!
    this.#size -= size
    this.#evicted += size
  }

  #closeKey(key: string): void {
    const group = this.#open.get(key)
    if (group) this.#close(group)
  }

  #close(open: OpenGroup): void {
    // No member was kept.
    if (open.members.length === 0) return void this.#open.delete(open.key)
    const group = open.close(this.#options.advantages)
    this.#open.delete(open.key)
    this.#closed.push(group)
  }

  /** Closed groups in random order. Each draw has its own random stream, so the number of draws is enough to resume. */
  *#draw(): Generator<HeldGroup, undefined> {
    const { seed } = this.#options
    const key = { seed, purpose: 'experience', stream: 'sample', task: '', visit: this.#draws++, rollout: 1 }
    for (const place of drawDistinct(this.#closed.length, randomFrom(key))) yield this.#closed.at(place)!
  }
}
