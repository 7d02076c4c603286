import type { Row } from './messages.ts'
import type { StoreFile } from './store-thread.ts'

/** Commits follow each other no faster than this: what ends within it shares one. A run that ends does not wait. */
const COMMIT_EVERY_MS = 4

/**
 * Rows on their way to the file, and what may only happen once they are there. One batch is under way at a time; what
 * comes meanwhile is the next one, so that batches grow by themselves when the disk is slow.
 */
export class GroupCommit {
  readonly #file: StoreFile
  readonly #failed: (error: Error) => void
  /** Adds rows that are not urgent, when a batch is about to go. */
  fill = () => {}
  /** There is room for more. */
  committed = () => {}
  #rows: Row[] = []
  #after: (() => void)[] = []
  #underWay = false
  #stopWaiting: (() => void) | undefined
  #sentAt = 0
  /** Somebody waits for what is sent next. */
  #soon = false
  #urgent = false
  #broken = false
  #begun = false

  constructor(file: StoreFile, failed: (error: Error) => void) {
    this.#file = file
    this.#failed = failed
  }

  /** How many rows are not yet safe, and responses not yet reported. */
  uncommitted = 0

  /** Nothing is written before. */
  begin(): void {
    this.#begun = true
    if (this.#rows.length > 0) this.#arm()
  }

  /** Nobody waits for it: it goes with what comes next, or in a little while. */
  add(row: Row): void {
    this.#rows.push(row)
    this.uncommitted++
    if (this.#rows.length === 1) this.#arm(COMMIT_EVERY_MS)
  }

  /** Calls back when all that was added before is on disk; never, if that fails. */
  whenSafe(callback: () => void): void {
    this.#after.push(callback)
    this.uncommitted++
    this.#arm()
  }

  /** Resolves when all is on disk, or cannot be. */
  flush(): Promise<void> {
    if (this.#broken) return Promise.resolve()
    this.#urgent = true
    this.#stopWaiting?.()
    this.#stopWaiting = undefined
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#settled = resolve
    this.#send()
    return promise
  }

  /** Nothing of it is to be written. */
  abandon(): void {
    this.#broken = true
    this.#stopWaiting?.()
  }

  #settled = () => {}

  #arm(least = 0): void {
    if (this.#underWay || this.#broken || !this.#begun) return
    if (this.#stopWaiting !== undefined && (least > 0 || this.#soon)) return
    this.#stopWaiting?.()
    this.#soon = least === 0
    const wait = Math.max(least, COMMIT_EVERY_MS - (performance.now() - this.#sentAt))
    this.#stopWaiting = later(wait, () => {
      this.#stopWaiting = undefined
      this.#send()
    })
  }

  #send(): void {
    if (this.#underWay || this.#broken) return
    this.fill()
    const rows = this.#rows
    const after = this.#after
    if (rows.length === 0 && after.length === 0) return this.#settled()
    this.#rows = []
    this.#after = []
    this.#underWay = true
    this.#sentAt = performance.now()
    this.#file.write(rows).then(
      () => {
        this.#underWay = false
        this.uncommitted -= rows.length + after.length
        for (const callback of after) callback()
        this.committed()
        if (this.#urgent) this.#send()
        else if (this.#rows.length > 0 || this.#after.length > 0) this.#arm()
      },
      (error: Error) => {
        if (this.#broken) return
        this.#broken = true
        this.#failed(error)
        this.#settled()
      },
    )
  }
}

/** Calls back after so many milliseconds; what it returns stops that. A timer would take one at least. */
function later(ms: number, callback: () => void): () => void {
  if (ms > 0) {
    const timer = setTimeout(callback, ms)
    return () => clearTimeout(timer)
  }
  const immediate = setImmediate(callback)
  return () => clearImmediate(immediate)
}
