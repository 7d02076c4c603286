import type { TrainingAbout, TrainingSink } from './sink.ts'

/** The timeout of one call of a sink. */
const CALL_MS = 30_000
/** A sink with this many pending calls is slower than the training. */
const MAX_PENDING = 10_000

/** The sinks of a training. No method throws, and only `close` waits. */
export interface OpenSinks {
  scalars(step: number, values: Readonly<Record<string, number>>, at: number): void
  text(step: number, name: string, text: string, at: number): void
  /** Waits for all pending calls, within the timeouts. */
  close(): Promise<void>
}

/** `report` receives one line for each sink that fails, and for each metric that is not a finite number. */
export function openSinks(
  sinks: readonly TrainingSink[],
  about: TrainingAbout,
  report: (line: string) => void,
  { callMs = CALL_MS, maxPending = MAX_PENDING }: { readonly callMs?: number; readonly maxPending?: number } = {},
): OpenSinks {
  const guarded = sinks.map((sink) => new GuardedSink(sink, report, callMs, maxPending))
  for (const sink of guarded) sink.open(about)
  const reported = new Set<string>()
  return {
    scalars(step, values, at) {
      const finite: Record<string, number> = Object.create(null)
      for (const [name, value] of Object.entries(values))
        if (Number.isFinite(value)) finite[name] = value
        else if (!reported.has(name)) {
          reported.add(name)
          report(`\`${name}\` is ${value} at step ${step}; non-finite values are left out of the log`)
        }
      for (const sink of guarded) sink.scalars(step, finite, at)
    },
    text(step, name, text, at) {
      for (const sink of guarded) sink.text(step, name, text, at)
    },
    async close() {
      await Promise.all(guarded.map((sink) => sink.close()))
    },
  }
}

class GuardedSink {
  readonly #sink: TrainingSink
  readonly #report: (line: string) => void
  readonly #callMs: number
  readonly #maxPending: number
  #last: Promise<void> = Promise.resolve()
  #pending = 0
  #isDisabled = false

  constructor(sink: TrainingSink, report: (line: string) => void, callMs: number, maxPending: number) {
    this.#sink = sink
    this.#report = report
    this.#callMs = callMs
    this.#maxPending = maxPending
  }

  open(about: TrainingAbout): void {
    this.#call((sink) => sink.open?.(about))
  }

  scalars(step: number, values: Readonly<Record<string, number>>, at: number): void {
    this.#call((sink) => sink.scalars(step, values, at))
  }

  text(step: number, name: string, text: string, at: number): void {
    this.#call((sink) => sink.text?.(step, name, text, at))
  }

  /** A sink that failed is closed too, because it may hold a file; errors of this are not reported. */
  async close(): Promise<void> {
    await this.#last
    await this.#bounded((sink) => sink.close?.())
    this.#isDisabled = true
  }

  #call(call: (sink: TrainingSink) => void | Promise<void>): void {
    if (this.#isDisabled) return
    if (this.#pending >= this.#maxPending)
      return this.#disable(`it is slower than the training; ${this.#pending} calls are pending`)
    this.#pending++
    this.#last = this.#last.then(async () => {
      this.#pending--
      if (!this.#isDisabled) await this.#bounded(call)
    })
  }

  async #bounded(call: (sink: TrainingSink) => void | Promise<void>): Promise<void> {
    const { promise: late, reject } = Promise.withResolvers<never>()
    const timer = setTimeout(() => reject(new Error(`a call took longer than ${this.#callMs / 1000} s`)), this.#callMs)
    try {
      await Promise.race([call(this.#sink), late])
    } catch (error) {
      this.#disable(error instanceof Error ? error.message : String(error))
    } finally {
      clearTimeout(timer)
    }
  }

  #disable(why: string): void {
    if (this.#isDisabled) return
    this.#isDisabled = true
    const name = this.#sink.name ?? 'custom sink'
    this.#report(`the log of this training (${name}) failed and is disabled; the training continues: ${why}`)
  }
}
