import { ManyworldsError } from '../errors.ts'
import type { ReadyTask, TaskSource } from '../executor/source.ts'
import { repack } from '../protocol/pack.ts'
import type { TaskResponse } from '../task.ts'

/** One task after the other, each with the answer of the one before. After a failure the rest is skipped. */
export class SequenceSource implements TaskSource {
  readonly #inner: TaskSource
  #wake = () => {}
  #busy = false
  #previous: unknown
  #failed: string | undefined
  /** After a failure: the tasks that are not run, the next one last. */
  #rest: ReadyTask[] | undefined

  constructor(inner: TaskSource) {
    this.#inner = inner
  }

  open(wake: () => void): void {
    this.#wake = wake
    this.#inner.open(wake, () => 1)
  }

  pull(): ReadyTask | 'wait' | 'end' {
    if (this.#busy) return 'wait'
    if (this.#failed !== undefined) return this.#skipRest()
    const item = this.#inner.pull()
    if (typeof item === 'string') return item
    this.#busy = true
    return this.#previous === undefined ? item : { ...item, previous: this.#previous }
  }

  settled(_index: number, response: TaskResponse): void {
    if (this.#failed !== undefined) return
    this.#busy = false
    if (response.success) this.#previous = repack(response.answer)
    else this.#failed = `not run: task '${response.id}' before it did not succeed (${response.status})`
    this.#wake()
  }

  close(): ReadyTask[] {
    return [...(this.#rest?.splice(0).reverse() ?? []), ...this.#inner.close()]
  }

  #skipRest(): ReadyTask | 'end' {
    this.#rest ??= this.#inner.close().reverse()
    const item = this.#rest.pop()
    return item === undefined ? 'end' : { ...item, skip: this.#failed! }
  }
}

interface Node {
  readonly item: ReadyTask
  readonly needs: readonly string[]
  readonly dependents: Node[]
  missing: number
}

/** Tasks with `dependsOn`: each is ready when all it names have succeeded. */
export class GraphSource implements TaskSource {
  readonly #nodes: Node[]
  readonly #ready: ReadyTask[] = []
  #next = 0
  #left: number
  readonly #answers = new Map<string, unknown>()
  readonly #pendingUses = new Map<string, number>()
  #wake = () => {}

  constructor(items: readonly ReadyTask[]) {
    this.#nodes = link(items)
    this.#left = items.length
    for (const node of this.#nodes) {
      if (node.missing === 0) this.#ready.push(node.item)
      for (const id of node.needs) this.#pendingUses.set(id, (this.#pendingUses.get(id) ?? 0) + 1)
    }
  }

  open(wake: () => void): void {
    this.#wake = wake
  }

  pull(): ReadyTask | 'wait' | 'end' {
    const item = this.#ready[this.#next]
    if (item === undefined) return this.#left === 0 ? 'end' : 'wait'
    this.#next++
    this.#left--
    return item
  }

  settled(index: number, response: TaskResponse): void {
    const node = this.#nodes[index]!
    if (node.dependents.length === 0) return
    if (response.success) this.#answers.set(response.id, response.answer)
    for (const dependent of node.dependents) {
      if (dependent.missing <= 0) continue
      if (!response.success) {
        dependent.missing = -1
        this.#ready.push({
          ...dependent.item,
          skip: `not run: task '${response.id}', which it depends on, did not succeed (${response.status})`,
        })
      } else if (--dependent.missing === 0)
        this.#ready.push({ ...dependent.item, results: this.#resultsFor(dependent) })
    }
    this.#wake()
  }

  close(): ReadyTask[] {
    const pulled = new Set(this.#ready.slice(0, this.#next).map(({ index }) => index))
    this.#left = 0
    this.#next = this.#ready.length
    return this.#nodes.map(({ item }) => item).filter(({ index }) => !pulled.has(index))
  }

  /** Answers are released when the last task that needs them has them. */
  #resultsFor({ needs }: Node): unknown {
    const results = new Map<string, unknown>()
    for (const id of needs) {
      results.set(id, this.#answers.get(id))
      const uses = this.#pendingUses.get(id)! - 1
      this.#pendingUses.set(id, uses)
      if (uses === 0) this.#answers.delete(id)
    }
    return repack(results)
  }
}

function link(items: readonly ReadyTask[]): Node[] {
  const nodes: Node[] = items.map((item) => {
    const needs = [...new Set(item.task.dependsOn ?? [])]
    return { item, needs, dependents: [], missing: needs.length }
  })
  const byId = new Map(nodes.map((node) => [node.item.id, node]))
  for (const node of nodes) {
    for (const id of node.needs) {
      const needed = byId.get(id)
      if (!needed)
        throw new ManyworldsError(
          'DEPENDENCY_UNKNOWN',
          `task '${node.item.id}' depends on '${id}', and no task of this run has that id`,
        )
      needed.dependents.push(node)
    }
  }
  refuseCycles(nodes, byId)
  return nodes
}

function refuseCycles(nodes: readonly Node[], byId: ReadonlyMap<string, Node>): void {
  const missing = new Map(nodes.map((node) => [node, node.missing]))
  const free = nodes.filter((node) => node.missing === 0)
  for (const node of free) {
    for (const dependent of node.dependents) {
      const left = missing.get(dependent)! - 1
      missing.set(dependent, left)
      if (left === 0) free.push(dependent)
    }
  }
  if (free.length === nodes.length) return
  // Every remaining task has a remaining predecessor, so walking back must reach a cycle.
  const stuck = new Set(nodes.filter((node) => missing.get(node)! > 0))
  const path: Node[] = []
  let node = [...stuck][0]!
  while (!path.includes(node)) {
    path.push(node)
    node = node.needs.map((id) => byId.get(id)!).find((needed) => stuck.has(needed))!
  }
  const cycle = [...path.slice(path.indexOf(node)), node].map(({ item }) => `'${item.id}'`)
  throw new ManyworldsError('DEPENDENCY_CYCLE', `tasks depend on each other in a cycle: ${cycle.join(' needs ')}`)
}
