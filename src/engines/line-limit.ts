/** What one node or Ray worker may have the driver print in this time: it can print faster than anybody reads. */
const WINDOW_MS = 10_000
const MAX_LINES = 1000
const MAX_CHARS = 256 * 1024

/** Bounds the lines that are printed for a node or Ray worker, and says how many were left out. */
export class LineLimit {
  readonly #leftOut: (lines: number) => void
  #timer: NodeJS.Timeout | undefined
  #lines = 0
  #chars = 0
  #dropped = 0

  constructor(leftOut: (lines: number) => void) {
    this.#leftOut = leftOut
  }

  /** Whether this may be printed now. */
  allows(text: string): boolean {
    this.#timer ??= setTimeout(() => this.#next(), WINDOW_MS).unref()
    const lines = Math.max(1, text.split('\n').length - 1)
    if (this.#dropped > 0 || this.#lines + lines > MAX_LINES || this.#chars + text.length > MAX_CHARS) {
      this.#dropped += lines
      return false
    }
    this.#lines += lines
    this.#chars += text.length
    return true
  }

  #next(): void {
    const dropped = this.#dropped
    this.#timer = undefined
    this.#lines = this.#chars = this.#dropped = 0
    if (dropped > 0) this.#leftOut(dropped)
  }
}
