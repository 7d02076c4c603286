/** What waits, and for whom. */
export interface Queued {
  readonly by: object
  /** Ahead of what else waits for the same. */
  readonly first: boolean
}

interface Link<Item> {
  readonly item: Item
  readonly line: Line<Item>
  before: Link<Item> | undefined
  after: Link<Item> | undefined
}

/** What waits for one of them, in its order; the lines form a ring. */
interface Line<Item> {
  readonly by: object
  head: Link<Item> | undefined
  tail: Link<Item> | undefined
  before: Line<Item>
  after: Line<Item>
}

/**
 * A queue in which those who wait take turns, one item each. Every operation takes the same time however many wait: linked
 * lists, because the first entry of a Map is slow to find once many before it were deleted.
 */
export class FairQueue<Item extends Queued> {
  readonly #lines = new Map<object, Line<Item>>()
  readonly #links = new Map<Item, Link<Item>>()
  /** The line whose turn it is. The one before it in the ring is the last. */
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

  /** Takes what `peek` shows; it is the next one's turn. */
  take(): Item | undefined {
    const line = this.#turn
    if (line === undefined) return undefined
    const { item } = line.head!
    this.#turn = line.after
    this.remove(item)
    return item
  }

  /** False: it does not wait here. */
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
