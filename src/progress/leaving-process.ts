import process from 'node:process'

/** These end a process without any event, unless somebody listens. */
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/**
 * Tells when the process is about to end, in whatever way it can be known, without changing that it ends: Node prints
 * an uncaught error, and the shell its prompt, where the cursor stands.
 */
export class LeavingProcess {
  readonly #dying: () => void
  readonly #gone: () => void

  /** `dying`: an error nobody caught, which a handler may still survive. `gone`: nothing comes after it. */
  constructor(tell: { dying: () => void; gone: () => void }) {
    this.#dying = tell.dying
    this.#gone = tell.gone
  }

  watch(): void {
    process.on('uncaughtExceptionMonitor', this.#dying)
    process.on('exit', this.#gone)
    // Before others: a listener for one time is not counted any more when it was called.
    for (const signal of SIGNALS) process.prependListener(signal, this.#signalled)
  }

  unwatch(): void {
    process.off('uncaughtExceptionMonitor', this.#dying)
    process.off('exit', this.#gone)
    for (const signal of SIGNALS) process.off(signal, this.#signalled)
  }

  readonly #signalled = (signal: NodeJS.Signals): void => {
    // Whoever else listens decides what becomes of the process.
    if (process.listenerCount(signal) > 1) return
    this.#gone()
    process.kill(process.pid, signal)
  }
}
