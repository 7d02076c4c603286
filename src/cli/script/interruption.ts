import { setTimeout as sleep } from 'node:timers/promises'
import type { RunControl } from '../../runners/run-host.ts'
import { counted } from '../../text/quantities.ts'

/** The exit codes that shells use for programs that a signal ended. */
const EXIT_CODES = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 } as const
/** How long the goodbye to other machines may take. */
const GOODBYE_MS = 3000
type Signal = keyof typeof EXIT_CODES

interface Hooks {
  /** Prints a line for the user during the run. */
  say(line: string): void
  /** Prints the last line: how to resume. */
  farewell(): void
  /** Tells other machines that this driver is done. */
  goodbye(): Promise<void>
}

/** Ctrl-C, SIGTERM or SIGHUP once: no new tasks are started, and running ones may finish. Ctrl-C or SIGTERM twice: stops at once. */
export class Interruption {
  readonly #graceMs: number
  readonly #hooks: Hooks
  readonly #going = new Set<RunControl>()
  #signal: Signal | undefined

  constructor(graceMs: number, hooks: Hooks) {
    this.#graceMs = graceMs
    this.#hooks = hooks
    for (const signal of Object.keys(EXIT_CODES) as Signal[]) process.on(signal, this.#interrupt)
  }

  /** Restores the default effect of signals. */
  end(): void {
    for (const signal of Object.keys(EXIT_CODES) as Signal[]) process.off(signal, this.#interrupt)
  }

  get interrupted(): boolean {
    return this.#signal !== undefined
  }

  started(run: RunControl): void {
    this.#going.add(run)
    if (this.#signal) run.stop(0)
  }

  /**
   * Returns true if the program is exiting: the script must not continue, because it would take the interrupted run for a
   * complete one.
   */
  ended(run: RunControl): boolean {
    this.#going.delete(run)
    if (!this.#signal) return false
    if (this.#going.size === 0) void this.#leaveInPeace()
    return true
  }

  /** Cancels all runs, and waits at most this long for their end. */
  async stopAll(withinMs: number): Promise<void> {
    for (const run of this.#going) run.stop(0)
    for (const until = Date.now() + withinMs; this.#going.size > 0 && Date.now() < until; ) await sleep(10)
  }

  readonly #interrupt = (signal: Signal): void => {
    const again = this.#signal !== undefined
    // When a terminal closes, the kernel and the shell may each send one.
    if (again && signal === 'SIGHUP') return
    this.#signal = signal
    if (again || this.#going.size === 0) return this.#leave()
    const running = [...this.#going].reduce((sum, run) => sum + run.running(), 0)
    const wait = `${counted(running, 'task')} ${running === 1 ? 'is' : 'are'} running and may take ${this.#graceMs / 1000} s more`
    if (running > 0) this.#hooks.say(`stopping: no new tasks are started; ${wait}. Ctrl-C again stops at once`)
    for (const run of this.#going) run.stop(this.#graceMs)
  }

  /** Tells nodes that this driver is done before it exits, so that they do not wait for it to reconnect. */
  async #leaveInPeace(): Promise<void> {
    await Promise.race([this.#hooks.goodbye(), sleep(GOODBYE_MS)])
    this.#leave()
  }

  #leave(): void {
    this.#hooks.farewell()
    process.exit(EXIT_CODES[this.#signal!])
  }
}
