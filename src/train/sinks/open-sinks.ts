import type { TrainingAbout, TrainingSink } from './sink.ts'

/** The longest that one call of a sink may take. */
const CALL_MS = 30_000
/** A sink with so many calls waiting is slower than the training. */
const MOST_WAITING = 10_000

/** The sinks of a training, as the training sees them: nothing here throws, and nothing but `close` waits. */
export interface OpenSinks {
  scalars(step: number, values: Readonly<Record<string, number>>, at: number): void
  text(step: number, name: string, text: string, at: number): void
  /** Waits for what was told so far, within bounds. */
  close(): Promise<void>
}

/** `report` is told once, in a line, of each sink that fails, and of each figure that is no finite number. */
export function openSinks(
  sinks: readonly TrainingSink[],
  about: TrainingAbout,
  report: (line: string) => void,
  { callMs = CALL_MS, mostWaiting = MOST_WAITING }: { readonly callMs?: number; readonly mostWaiting?: number } = {},
): OpenSinks {
  const guarded = sinks.map((sink) => new GuardedSink(sink, report, callMs, mostWaiting))
  for (const sink of guarded) sink.open(about)
  const reported = new Set<string>()
  return {
    scalars(step, values, at) {
      const finite: Record<string, number> = Object.create(null)
      for (const [name, value] of Object.entries(values))
        if (Number.isFinite(value)) finite[name] = value
        else if (!reported.has(name)) {
          reported.add(name)
          report(
            `\`${name}\` is ${value} at step ${step}: it is left out of the log there, and wherever it is not finite`,
          )
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
  readonly #mostWaiting: number
  #last: Promise<void> = Promise.resolve()
  #waiting = 0
  #isOut = false

  constructor(sink: TrainingSink, report: (line: string) => void, callMs: number, mostWaiting: number) {
    this.#sink = sink
    this.#report = report
    this.#callMs = callMs
    this.#mostWaiting = mostWaiting
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

  /** One that failed is closed too: it may hold a file. What it says to that is not reported. */
  async close(): Promise<void> {
    await this.#last
    await this.#bounded((sink) => sink.close?.())
    this.#isOut = true
  }

  #call(call: (sink: TrainingSink) => void | Promise<void>): void {
    if (this.#isOut) return
    if (this.#waiting >= this.#mostWaiting)
      return this.#leaveOut(`it is slower than the training: ${this.#waiting} calls are waiting`)
    this.#waiting++
    this.#last = this.#last.then(async () => {
      this.#waiting--
      if (!this.#isOut) await this.#bounded(call)
    })
  }

  async #bounded(call: (sink: TrainingSink) => void | Promise<void>): Promise<void> {
    const { promise: late, reject } = Promise.withResolvers<never>()
    const timer = setTimeout(() => reject(new Error(`a call took longer than ${this.#callMs / 1000} s`)), this.#callMs)
    try {
      await Promise.race([call(this.#sink), late])
    } catch (error) {
      this.#leaveOut(error instanceof Error ? error.message : String(error))
    } finally {
      clearTimeout(timer)
    }
  }

  #leaveOut(why: string): void {
    if (this.#isOut) return
    this.#isOut = true
    const name = this.#sink.name ?? 'a sink of your own'
    this.#report(`the log of this training (${name}) failed and is left out; the training goes on: ${why}`)
  }
}
