import { ManyworldsError } from '../../errors.ts'
import { counted, duration } from '../../text/quantities.ts'
import type { SharedFailure } from './limiter.ts'

/** So many refusals in a row, of any calls of the model, and no answer in between. One may be a mistake of the server. */
const REFUSALS = 5
/** A server that has answered before is restarted, most likely: it gets this many times the patience. */
const ANSWERED_PATIENCE = 4

interface BreakerSettings {
  /** Of the model, for the error: "model 'small'", and "qwen3 at http://…". */
  readonly what: string
  readonly where: string
  /** How long an unreachable server is called again, by all calls together. */
  readonly patienceMs: number
  /** Called once, when calls stop. */
  opened(error: ManyworldsError): void
}

/**
 * Stops the calls of one model in one run, once they fail for a reason that all of them share: the key is refused, there is
 * no such model, nobody listens. The tasks that wait for a call then end at once, and run again when the run is resumed.
 */
export class Breaker {
  readonly #settings: BreakerSettings
  readonly #listeners = new Set<() => void>()
  #error: ManyworldsError | undefined
  #answered = false
  #refusals = 0
  #unreachable = 0
  #last: SharedFailure | undefined
  /** Calls that have begun and not ended. */
  #underWay = 0
  /** Runs from the first call that did not reach the server. */
  #timer: NodeJS.Timeout | undefined
  /** The time is over, but a call is under way, which may have reached the server. */
  #isOverdue = false

  constructor(settings: BreakerSettings) {
    this.#settings = settings
  }

  /** Why no more calls are made; undefined while they are. */
  get error(): ManyworldsError | undefined {
    return this.#error
  }

  /** Calls the listener when calls stop, unless the returned function is called first. */
  onOpen(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  begins(): void {
    this.#underWay++
  }

  /** The server gave an answer that can be used. */
  answered(): void {
    this.#underWay--
    this.#answered = true
    this.#refusals = 0
    this.close()
  }

  /** `shared`: the failure, if other calls will fail for the same reason. */
  failed(shared: SharedFailure | undefined): void {
    this.#underWay--
    if (shared?.kind !== 'unreachable') this.close()
    if (shared !== undefined && this.#error === undefined) this.#note(shared)
    if (this.#isOverdue && this.#underWay === 0) this.#expire()
  }

  #note(failure: SharedFailure): void {
    // Some servers answer 403 to a single prompt; 401, 402 and 404 do not depend on it.
    if (failure.status === 403 && this.#answered) return
    this.#last = failure
    if (failure.kind === 'refused') {
      if (++this.#refusals >= REFUSALS) this.#open(`${counted(this.#refusals, 'call')} in a row were refused`)
      return
    }
    this.#unreachable++
    if (this.#isOverdue) return this.#expire()
    this.#timer ??= setTimeout(() => {
      this.#isOverdue = true
      if (this.#underWay === 0) this.#expire()
    }, this.#patienceMs).unref()
  }

  get #patienceMs(): number {
    const { patienceMs } = this.#settings
    return patienceMs * (this.#answered ? ANSWERED_PATIENCE : 1)
  }

  #expire(): void {
    this.#open(`${counted(this.#unreachable, 'call')} failed within ${duration(this.#patienceMs)}`)
  }

  /** The server was reached, or the run is over. */
  close(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#isOverdue = false
    this.#unreachable = 0
  }

  #open(often: string): void {
    const { what, where, opened } = this.#settings
    this.close()
    this.#error = new ManyworldsError(
      'MODEL_UNAVAILABLE',
      `${what} is not available: ${this.#last!.why} (${where}); ${often} and none was answered, so no more are made. Resume the run when it is available: the tasks that need it then run again`,
    )
    opened(this.#error)
    for (const listener of [...this.#listeners]) listener()
    this.#listeners.clear()
  }
}
