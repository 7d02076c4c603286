/** An item in the queue, and its owner. */
export interface Queued {
  readonly by: object
  /** Whether it goes ahead of the owner's other items. */
  readonly first: boolean
}

interface Link<Item> {
  readonly item: Item
  readonly line: Line<Item>
  before: Link<Item> | undefined
  after: Link<Item> | undefined
}

/** The items of one owner, in order; the lines form a ring. */
interface Line<Item> {
  readonly by: object
  head: Link<Item> | undefined
  tail: Link<Item> | undefined
  before: Line<Item>
  after: Line<Item>
}

/**
 * A queue in which owners take turns, one item each. All operations take constant time. Linked lists, because the first
 * entry of a Map is slow to find after many deletions.
 */
export class FairQueue<Item extends Queued> {
  readonly #lines = new Map<object, Line<Item>>()
  readonly #links = new Map<Item, Link<Item>>()
  /** The line whose turn it is. Its predecessor in the ring is the last. */
  #turn: Line<Item> | undefined

  get size(): number {
    return this.#links.size
  }

  add(item: Item): void {
    const line = this.#lines.get(item.by) ?? this.#newLine(item.by)
    const link: Link<Item> = { item, line, before: undefined, after: undefined }
    this.#links.set(item, link)
    if (line.head === undefined) line.head = line.tail = link
    else if (item.first) {
      link.after = line.head
      line.head.before = link
      line.head = link
    } else {
      link.before = line.tail
      line.tail!.after = link
      line.tail = link
    }
  }

  peek(): Item | undefined {
    return this.#turn?.head?.item
  }

  /** The first items of the owners whose turn is next, without the one that `peek` returns; at most so many. */
  *others(most: number): Generator<Item> {
    const turn = this.#turn
    for (let line = turn?.after; line !== undefined && line !== turn && most > 0; line = line.after, most--)
      yield line.head!.item
  }

  /** Takes the item that `peek` returns; then it is the next owner's turn. */
  take(): Item | undefined {
    const line = this.#turn
    if (line === undefined) return undefined
    const { item } = line.head!
    this.#turn = line.after
    this.remove(item)
    return item
  }

  /** False if the item is not in the queue. */
  remove(item: Item): boolean {
    const link = this.#links.get(item)
    if (link === undefined) return false
    this.#links.delete(item)
    const { line, before, after } = link
    if (before) before.after = after
    else line.head = after
    if (after) after.before = before
    else line.tail = before
    if (line.head === undefined) this.#endLine(line)
    return true
  }

  #newLine(by: object): Line<Item> {
    const turn = this.#turn
    const line = { by, head: undefined, tail: undefined } as unknown as Line<Item>
    line.after = turn ?? line
    line.before = turn?.before ?? line
    line.before.after = line
    line.after.before = line
    this.#turn ??= line
    this.#lines.set(by, line)
    return line
  }

  #endLine(line: Line<Item>): void {
    this.#lines.delete(line.by)
    line.before.after = line.after
    line.after.before = line.before
    if (this.#turn === line) this.#turn = line.after === line ? undefined : line.after
  }
}
