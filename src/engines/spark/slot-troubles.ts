import { ManyworldsError } from '../../errors.ts'
import type { SlotInstructions } from '../../host/slot-instructions.ts'
import { showAddress } from '../../network/address.ts'
import { counted } from '../../text/quantities.ts'
import { SparkError } from './connect/spark-error.ts'
import { ADVICE, adviceFor, endedAtOnce, whatFailed } from './error-advice.ts'
import { Retries } from './retries.ts'
import type { SlotQuery } from './slot-queries.ts'

/** How long running slots may take to call. Default of `spark.waitMs`. */
const WAIT_MS = 60_000
/** The user is told after a slot has waited this long for a core. */
const WAITING_MS = 10_000
/** The gRPC status UNAVAILABLE. */
const UNAVAILABLE = 14
const GONE_MS = 60_000

export interface TroublesHooks {
  /** Connected slots. As long as there are some, the run goes on. */
  here(): number
  notice(line: string): void
  /** No slot is connected and none will come. Called once. */
  failed(error: Error): void
}

/** Handles failures of requested slots: tells the user, retries, and stops retrying. */
export class SlotTroubles {
  readonly retries = new Retries()
  readonly #waitMs: number
  readonly #hooks: TroublesHooks
  readonly #said = new Set<string>()
  /** Since when no session could be opened. */
  #unheardSince: number | undefined
  #failed = false
  #stopped = false

  constructor(waitMs: number | undefined, hooks: TroublesHooks) {
    this.#waitMs = waitMs ?? WAIT_MS
    this.#hooks = hooks
  }

  /** Whether it is over, for whatever reason. */
  get over(): boolean {
    return this.#failed || this.#stopped
  }

  /** Whether the server has answered lately. */
  get heard(): boolean {
    return this.#unheardSince === undefined
  }

  /** From now on, failures are expected. */
  stop(): void {
    this.#stopped = true
  }

  fail(error: Error): void {
    if (this.over) return
    this.#failed = true
    this.#hooks.failed(error)
  }

  /** The server has answered. */
  hears(): void {
    this.#unheardSince = undefined
  }

  /** The server did not answer the query for other drivers. Connected slots go on; without any, the run would wait forever. */
  unheard(error: Error, since: number): void {
    if (this.#stopped) return
    this.#unheardSince ??= since
    if (this.#hooks.here() === 0 && Date.now() - this.#unheardSince > GONE_MS) this.fail(error)
  }

  /** A slot was lost. It is requested again unless the limit is reached. */
  lost(line: string): void {
    this.#hooks.notice(line)
    if (this.#hooks.here() === 0 && this.retries.reason) this.fail(this.retries.reason)
  }

  /** Slots have ended without being told to. `node`: the Node.js that they used. */
  queryEnded({ slots, called, since }: SlotQuery, printed: string, node: string): void {
    if (this.#stopped || slots.size === 0) return
    // Slots that lost their connection to this process for too long end normally.
    if (called) return this.retries.later()
    const text = endedAtOnce(node, printed)
    this.noWorker(new ManyworldsError('SPARK_FAILED', text), text, since)
  }

  queryFailed({ asked, called, since }: SlotQuery, error: Error): void {
    if (this.#stopped) return
    const { causes = [], grpcCode } = error instanceof SparkError ? error : {}
    const cure = adviceFor([error.message, ...causes].join('\n'))
    const text = cure?.text ?? whatFailed(error.message)
    const failure = new ManyworldsError(cure?.code ?? 'SPARK_FAILED', text, { cause: error })
    // A query's server was already retried for a minute; without a session, allow the same time.
    if (grpcCode !== UNAVAILABLE || asked) this.#unheardSince = undefined
    else this.#unheardSince ??= since
    const gone = grpcCode === UNAVAILABLE && (asked || Date.now() - this.#unheardSince! > GONE_MS)
    const incurable = asked && !called && cure !== undefined
    if (this.#hooks.here() === 0 && (gone || incurable)) return this.fail(failure)
    if (asked) return this.noWorker(failure, text, since)
    this.#say(`${text}; requesting again`)
    this.retries.later()
  }

  /** Requested slots failed. They are requested again, up to a limit. */
  noWorker(error: Error, text: string, askedAt: number): void {
    const here = this.#hooks.here()
    const last = this.retries.failed(error, askedAt)
    if (last && here === 0) return this.fail(error)
    const others = here > 0 ? `${counted(here, 'slot')} go on, and ` : ''
    this.#say(`${text}; ${others}${last ? 'no more are requested' : 'the missing ones are requested again'}`)
  }

  /** Checks for requested slots that do not call. `name`: the name of this Spark in messages. */
  missSilent(queries: Iterable<SlotQuery>, { hosts, port }: SlotInstructions, name: string): void {
    for (const query of queries) {
      if (query.called || this.#hooks.here() > 0) continue
      const waited = Date.now() - query.since
      if (waited > WAITING_MS && query.running === 0)
        this.#say(`Spark has not started a worker yet: its executors are busy, or still being started (${name})`)
      if (query.running === 0 || waited < this.#waitMs) continue
      const tried = hosts.map((host) => showAddress({ host, port })).join(', ')
      this.fail(
        new ManyworldsError(
          'SPARK_UNREACHABLE',
          `Spark runs ${query.running} slots, and none of them has called this process at ${tried} within ${Math.round(waited / 1000)} s: ${ADVICE}`,
        ),
      )
    }
  }

  #say(line: string): void {
    if (this.#said.has(line)) return
    this.#said.add(line)
    this.#hooks.notice(line)
  }
}
