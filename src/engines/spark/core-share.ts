import { hostname } from 'node:os'
import { counted } from '../../text/quantities.ts'
import { type Ask, Board } from './board.ts'
import { allowance, coresForSlots, type Member, shortOf } from './shares.ts'

/** How often a driver that waits for others says so. */
const STILL_MS = 60_000

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
      await this.#round()
    }
  }

  async #round(): Promise<void> {
    const me = this.#me()
    let others = await this.#board.post(me)
    let limit = allowance(me, others, this.#cores([me, ...others]))
    if (limit > me.held) {
      // Said before it is done: of two that want the same core, the later one sees the other.
      others = await this.#board.post({ ...me, held: limit })
      if (limit > this.#cores([me, ...others]) - heldBy(others)) limit = me.held
    }
    const before = this.#limit
    this.#limit = limit
    const reason = this.#tell(me, others)
    if (limit !== before) this.#hooks.changed(reason)
  }

  #me(): Member {
    const { taken, wanted, idle, reserve } = this.#hooks.now()
    // What it may take, it may take at any time.
    const held = Math.max(taken, Math.min(this.#limit, wanted))
    const name = `${hostname()}:${process.pid}`
    return { id: this.#board.id, name, since: this.#since, held, wanted: idle ? 0 : wanted, reserve }
  }

  #cores(members: readonly Member[]): number {
    return coresForSlots(this.#hooks.now().cores, members)
  }

  /** Says what is waited for, and who for. Returns why workers are given back, if they are. */
  #tell(me: Member, others: readonly Member[]): string {
    const cores = this.#cores([me, ...others])
    const waiting = `${namesOf(shortOf(cores, others), me)} waits for cores`
    const holding = namesOf(
      others.filter(({ held }) => held > 0),
      me,
    )
    const has = `${counted(cores, 'core')} of this Spark are for workers, shared with ${holding || namesOf(others, me)}`
    if (me.held > this.#limit)
      this.#say(
        'gives',
        `${waiting}: ${me.held - this.#limit} of ${counted(me.held, 'worker')} are given back when their tasks are done`,
      )
    else if (this.#limit >= Math.min(me.wanted, cores)) this.#said = ''
    else if (this.#limit === 0) this.#say('waits', `waiting for a core: ${has}`, STILL_MS)
    else this.#say('shares', `${has}: ${this.#limit} of the ${counted(me.wanted, 'worker')} wanted can be had for now`)
    return waiting
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
  members
    .map(({ name, held }) => `${name === me.name ? 'another run of this program' : name} (${held} held)`)
    .join(', ') || 'another driver'
