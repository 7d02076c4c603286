import process from 'node:process'

/** Without a listener, these signals end the process, and no exit event is emitted. */
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/**
 * Notifies before the process ends, in every way that can be detected, without preventing the end. The row must be erased
 * before that, because Node prints an uncaught error, and the shell its prompt, at the cursor.
 */
export class LeavingProcess {
  readonly #dying: () => void
  readonly #gone: () => void

  /** `dying`: an uncaught error, which a handler may still catch. `gone`: the process ends now. */
  constructor(tell: { dying: () => void; gone: () => void }) {
    this.#dying = tell.dying
    this.#gone = tell.gone
  }

  watch(): void {
    process.on('uncaughtExceptionMonitor', this.#dying)
    process.on('exit', this.#gone)
    // Before other listeners, because a `once` listener is no longer counted after it was called.
    for (const signal of SIGNALS) process.prependListener(signal, this.#signalled)
  }

  unwatch(): void {
    process.off('uncaughtExceptionMonitor', this.#dying)
    process.off('exit', this.#gone)
    for (const signal of SIGNALS) process.off(signal, this.#signalled)
  }

  readonly #signalled = (signal: NodeJS.Signals): void => {
    // Another listener decides whether the process ends.
    if (process.listenerCount(signal) > 1) return
    this.#gone()
    process.kill(process.pid, signal)
  }
}
