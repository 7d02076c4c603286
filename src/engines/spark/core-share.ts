import { hostname } from 'node:os'
import { counted } from '../../text/quantities.ts'
import { firstLine } from '../../text/visible.ts'
import { type Ask, Board } from './board.ts'
import { allowance, coresForSlots, type Member, shortOf } from './shares.ts'

/** How often a driver that waits for others says so. */
const STILL_MS = 60_000
/** Answers in a row by which Spark refuses to let drivers see each other. */
const MOST_REFUSALS = 3

export interface CoreShareHooks {
  now(): CoresNow
  /** The limit has changed. */
  changed(reason: string): void
  notice(line: string): void
}

export interface CoresNow {
  /** Those of the application. */
  readonly cores: number
  /** Those that slots have, or were asked for. */
  readonly taken: number
  /** Those that the run could use. */
  readonly wanted: number
  /** There is no run: what is there is only kept for the next one. */
  readonly idle: boolean
  readonly reserve: number
}

/**
 * How many cores one engine may have of those that all drivers of a Spark application share. Each driver would leave its reserve
 * free and take the rest; two of them would take everything, and then neither gets a core for the queries that its workers wait
 * for. So all of them together leave the reserve, and divide the rest.
 */
export class CoreShare {
  readonly #board: Board
  readonly #hooks: CoreShareHooks
  readonly #since = Date.now()
  #limit = 0
  #alone = false
  #refusals = 0
  #reviewing: Promise<void> | undefined
  #again = false
  #said = ''
  #saidAt = 0

  constructor(ask: Ask, hooks: CoreShareHooks) {
    this.#board = new Board(ask)
    this.#hooks = hooks
  }

  /** The most slots that there may be at the moment. */
  get limit(): number {
    return this.#limit
  }

  /** Whether there was no other driver when it looked last. */
  get alone(): boolean {
    return this.#alone
  }

  /** Finds out what the limit is now. Who calls it while it does that waits for another round. */
  review(): Promise<void> {
    this.#again = true
    return (this.#reviewing ??= this.#reviewAll().finally(() => {
      this.#reviewing = undefined
    }))
  }

  async leave(): Promise<void> {
    await this.#reviewing?.catch(() => {})
    await this.#board.remove()
  }

  async #reviewAll(): Promise<void> {
    while (this.#again) {
      this.#again = false
      if (this.#refusals >= MOST_REFUSALS) continue
      try {
        await this.#round()
        this.#refusals = 0
      } catch (error) {
        if (!this.#isRefused(error as Error)) throw error
      }
    }
  }

  /** Where drivers must not see each other, each has to do what it would do alone. */
  #isRefused(error: Error & { errorClass?: string | undefined }): boolean {
    // A server that was started anew does not know the session. The next round has another.
    if (error.errorClass === undefined || error.errorClass.startsWith('INVALID_HANDLE')) return false
    if (++this.#refusals < MOST_REFUSALS) return false
    this.#alone = true
    this.#limit = Number.POSITIVE_INFINITY
    this.#hooks.notice(
      `cannot see which other drivers use this Spark, and takes cores as if there were none: ${firstLine(error.message)}`,
    )
    return true
  }

  async #round(): Promise<void> {
    const me = this.#me()
    const before = this.#limit
    // From here on it takes no more than it says that it has.
    this.#limit = Math.min(before, me.held)
    let others = await this.#board.post(me)
    let limit = allowance(me, others, this.#cores([me, ...others]))
    if (limit > me.held) {
      // Said before it is done: of two that want the same core, the later one sees the other.
      others = await this.#board.post({ ...me, held: limit })
      if (limit > this.#cores([me, ...others]) - heldBy(others)) limit = me.held
    }
    this.#limit = limit
    this.#alone = others.length === 0
    const reason = this.#tell(me, others)
    if (limit !== before) this.#hooks.changed(reason)
  }

  #me(): Member {
    const { taken, wanted, idle, reserve } = this.#hooks.now()
    // What it may take, it may take at any time.
    const held = Math.max(taken, Math.min(this.#limit, wanted))
    const name = `${hostname()}:${process.pid}`
    // What a run has asked for may come after its end, for the next one, as long as nobody else is there.
    const needed = idle && !this.#alone ? 0 : wanted
    return { id: this.#board.id, name, since: this.#since, held, wanted: needed, reserve }
  }

  #cores(members: readonly Member[]): number {
    return coresForSlots(this.#hooks.now().cores, members)
  }

  /** Says what is waited for, and who for. Returns why workers are given back, if they are. */
  #tell(me: Member, others: readonly Member[]): string {
    const all = [me, ...others]
    const cores = this.#cores(all)
    const short = shortOf(cores, all).filter(({ id }) => id !== me.id)
    const given = me.held - this.#limit
    const holders = others.filter(({ held }) => held > 0)
    const has = `${counted(cores, 'core')} of this Spark are for workers, shared with ${namesOf(holders.length > 0 ? holders : others, me)}`
    if (short.length > 0 && given > 0)
      this.#say(
        'gives',
        `gives back ${given} of ${counted(me.held, 'worker')} when their tasks are done: ${namesOf(short, me)} waits for cores`,
      )
    else if (this.#alone || this.#limit >= Math.min(me.wanted, cores)) this.#said = ''
    else if (this.#limit === 0) this.#say('waits', `waiting for a core: ${has}`, STILL_MS)
    else this.#say('shares', `${has}: ${this.#limit} of the ${counted(me.wanted, 'worker')} wanted can be had for now`)
    return short.length > 0 ? 'another driver waits for cores' : 'there are fewer cores'
  }

  /** Numbers change all the time; what is going on does not. */
  #say(kind: string, line: string, againMs = Number.POSITIVE_INFINITY): void {
    const now = performance.now()
    if (this.#said === kind && now - this.#saidAt < againMs) return
    this.#said = kind
    this.#saidAt = now
    this.#hooks.notice(line)
  }
}

const heldBy = (members: readonly Member[]): number => members.reduce((sum, { held }) => sum + held, 0)

/** A process may have several engines. */
const namesOf = (members: readonly Member[], me: Member): string =>
  members.map(({ name, held }) => `${name === me.name ? 'another run of this program' : name} (has ${held})`).join(', ')
