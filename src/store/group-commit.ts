import type { Row } from './messages.ts'
import type { StoreFile } from './store-thread.ts'

/** The shortest time between two commits. Rows that arrive within it share a commit. The last commit of a run does not wait. */
const COMMIT_EVERY_MS = 4

/**
 * Collects rows into commits, and runs callbacks after the commit. One batch is written at a time. Rows that arrive
 * meanwhile form the next batch, so batches grow when the disk is slow.
 */
export class GroupCommit {
  readonly #file: StoreFile
  readonly #failed: (error: Error) => void
  /** Called before a batch is sent, to add rows that are not urgent. */
  fill = () => {}
  /** Called after each commit. */
  committed = () => {}
  #rows: Row[] = []
  #after: (() => void)[] = []
  #underWay = false
  #stopWaiting: (() => void) | undefined
  #sentAt = 0
  /** A callback waits for the next batch. */
  #soon = false
  #urgent = false
  #broken = false
  #begun = false

  constructor(file: StoreFile, failed: (error: Error) => void) {
    this.#file = file
    this.#failed = failed
  }

  /** The number of rows and callbacks that are not committed yet. */
  uncommitted = 0

  /** Nothing is written before this call. */
  begin(): void {
    this.#begun = true
    if (this.#rows.length > 0) this.#arm()
  }

  /** Adds a row that nobody waits for. It goes with the next batch, at the latest after COMMIT_EVERY_MS. */
  add(row: Row): void {
    this.#rows.push(row)
    this.uncommitted++
    if (this.#rows.length === 1) this.#arm(COMMIT_EVERY_MS)
  }

  /** Calls back when everything added before is committed. Never calls back if that fails. */
  afterCommit(callback: () => void): void {
    this.#after.push(callback)
    this.uncommitted++
    this.#arm()
  }

  /** Resolves when everything is committed, or writing has failed. */
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

  /** Drops everything that is not sent yet. */
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

/** Calls back after `ms`; returns a function that cancels. Uses setImmediate for 0, because a timer takes at least 1 ms. */
function later(ms: number, callback: () => void): () => void {
  if (ms > 0) {
    const timer = setTimeout(callback, ms)
    return () => clearTimeout(timer)
  }
  const immediate = setImmediate(callback)
  return () => clearImmediate(immediate)
}
