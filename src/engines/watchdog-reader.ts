/** A larger number is not a count of tasks. */
const MAX_DIGITS = 9
/** The final report is a lease and eight lines of a stack; a longer one is dropped. */
const MAX_WORDS_CHARS = 64 * 1024

/** Reads what a worker's watchdog writes to fd 4: `12.` per heartbeat (12 tasks) and, before it ends its process, one line `!{…}`. */
export class WatchdogReader {
  /** The number of running tasks in the last heartbeat. */
  tasks = 0
  #digits = ''
  #words: string | undefined
  #ended = false

  hear(text: string): void {
    let at = 0
    for (; at < text.length && this.#words === undefined; at++) {
      const char = text[at]!
      if (char >= '0' && char <= '9') this.#digits = (this.#digits + char).slice(0, MAX_DIGITS + 1)
      else {
        if (char === '.' && this.#digits !== '' && this.#digits.length <= MAX_DIGITS) this.tasks = Number(this.#digits)
        if (char === '!') this.#words = ''
        this.#digits = ''
      }
    }
    if (this.#words === undefined || this.#ended) return
    const end = text.indexOf('\n', at)
    this.#ended = end >= 0 || this.#words.length > MAX_WORDS_CHARS
    if (this.#words.length <= MAX_WORDS_CHARS)
      this.#words += text.slice(at, Math.min(end < 0 ? text.length : end, at + MAX_WORDS_CHARS + 1))
  }

  /** The final report; undefined if there is none or it is incomplete. */
  get lastWords(): string | undefined {
    return this.#ended && this.#words !== undefined && this.#words.length <= MAX_WORDS_CHARS ? this.#words : undefined
  }
}
