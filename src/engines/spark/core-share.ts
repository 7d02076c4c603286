import { hostname } from 'node:os'
import { firstLine } from '../../text/escape-controls.ts'
import { counted } from '../../text/quantities.ts'
import { type Ask, Board } from './board.ts'
import { allowance, coresForSlots, type Member, shortOf } from './shares.ts'

/** How often the user is told that this driver waits for others. */
const STILL_MS = 60_000
/** After this many failures in a row, Spark does not let drivers see each other. */
const MOST_REFUSALS = 3

export interface CoreShareHooks {
  now(): CoresNow
  /** The limit has changed. */
  changed(reason: string): void
  notice(line: string): void
}

export interface CoresNow {
  /** Cores of the application. */
  readonly cores: number
  /** Cores that slots have or were requested for. */
  readonly taken: number
  /** Cores that the run could use. */
  readonly wanted: number
  /** No run is open: slots are only kept for the next one. */
  readonly idle: boolean
  readonly reserve: number
}

/**
 * How many cores one engine may use, of those that all drivers of a Spark application share. Alone, each driver leaves its
 * reserve free and takes the rest. Two drivers would take everything, and then neither would get a core for the queries that
 * its workers wait for. So all drivers together leave the reserve free and divide the rest.
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

  /** The most slots allowed at the moment. */
  get limit(): number {
    return this.#limit
  }

  /** Whether the last check found no other driver. */
  get alone(): boolean {
    return this.#alone
  }

  /** Computes the limit anew. A call during a round waits for the next round. */
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

  /** If drivers cannot see each other, each behaves as if it were alone. */
  #isRefused(error: Error & { errorClass?: string | undefined }): boolean {
    // A restarted server does not know the session. The next round opens another.
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
    // From here on this driver takes no more than it posts.
    this.#limit = Math.min(before, me.held)
    let others = await this.#board.post(me)
    let limit = allowance(me, others, this.#cores([me, ...others]))
    if (limit > me.held) {
      // Post before taking: if two drivers want the same core, the later one sees the other's post.
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
    // It may take its full limit at any time, so post that.
    const held = Math.max(taken, Math.min(this.#limit, wanted))
    const name = `${hostname()}:${process.pid}`
    // Slots requested by a run may arrive after its end and serve the next run, as long as there is no other driver.
    const needed = idle && !this.#alone ? 0 : wanted
    return { id: this.#board.id, name, since: this.#since, held, wanted: needed, reserve }
  }

  #cores(members: readonly Member[]): number {
    return coresForSlots(this.#hooks.now().cores, members)
  }

  /** Tells the user what this driver waits for. Returns why workers are given back, if they are. */
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

  /** Says a line, unless one of the same kind was just said: lines differ in their numbers, which change all the time. */
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
