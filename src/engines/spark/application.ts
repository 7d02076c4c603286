import { within } from '../../within.ts'
import { localRelation, sql } from './connect/plans.ts'
import { parseRemote, showRemote } from './connect/remote.ts'
import type { ConnectSession } from './connect/session.ts'
import { SparkError } from './connect/spark-error.ts'
import { slotQuery } from './launcher.ts'
import { findRoom, type Room } from './room.ts'
import type { Server } from './server.ts'
import { makeSlotProgram } from './slot-program.ts'

/** Spark settings of our session. */
const SETTINGS = {
  // One partition per row.
  'spark.sql.leafNodeDefaultParallelism': '100000',
}

/** How long to wait for the server when sessions are released. */
const RELEASE_MS = 5000

/** A slot prints one word when it ends; longer output comes from some other program and goes into an error. */
const PRINTED_CHARS = 500

/** Uses Spark for the engine: runs queries whose rows are slots, and asks how many there can be. */
export class Application {
  readonly #server: Server
  readonly #nodeBinary: string
  #session: Promise<ConnectSession> | undefined
  /** A second session for questions: the settings of the first would change the answers. */
  #asking: Promise<ConnectSession> | undefined
  /** Sessions that the server has forgotten. Other queries may still run into that. */
  readonly #forgotten: ConnectSession[] = []
  #alive = true

  constructor(server: Server, nodeBinary: string) {
    this.#server = server
    this.#nodeBinary = nodeBinary
  }

  /** Its name in messages. */
  get name(): string {
    return showRemote(parseRemote(this.#server.remote))
  }

  /** Opens the session for slots, if there is none. */
  async prepare(): Promise<void> {
    await this.#equipped()
  }

  findRoom(): Promise<Room> {
    return this.ask(findRoom)
  }

  /** Runs a question that needs no slot. After a failure, the next one uses a new session. */
  async ask<Answer>(question: (session: ConnectSession) => Promise<Answer>): Promise<Answer> {
    const asking = (this.#asking ??= this.#open())
    try {
      return await question(await asking)
    } catch (error) {
      if (this.#asking === asking) this.#asking = undefined
      void asking.then(
        (session) => session.close(),
        () => {},
      )
      throw error
    }
  }

  /**
   * Requests slots. Resolves with their output when all have ended normally; rejects when Spark gives up the query.
   */
  async run(slots: readonly number[], orders: string, onRunning: (slots: number) => void): Promise<string> {
    const equipped = this.#equipped()
    const session = await equipped
    const program = await makeSlotProgram()
    const rows = { slot: slots.map(String), orders: slots.map(() => orders), program: slots.map(() => program) }
    try {
      const query = sql(slotQuery(this.#nodeBinary), { slots: localRelation(rows) })
      let printed = ''
      for await (const { slot, word } of session.rows(query, { onProgress: ({ inflight }) => onRunning(inflight) }))
        if (printed.length < PRINTED_CHARS) printed += `${slot ?? ''} ${word ?? ''}\n`
      return printed.slice(0, PRINTED_CHARS)
    } catch (error) {
      // A restarted server does not know the session.
      const forgotten = error instanceof SparkError && /^INVALID_HANDLE\.SESSION/.test(error.errorClass ?? '')
      if (forgotten && this.#session === equipped) {
        this.#session = undefined
        this.#forgotten.push(session)
      }
      throw error
    }
  }

  /** Makes Spark start no more slots. Running ones are not ended: Spark only stops waiting for them. */
  async interrupt(): Promise<void> {
    const session = await this.#session?.catch(() => undefined)
    await session?.interrupt()
  }

  keepAlive(alive: boolean): void {
    this.#alive = alive
    this.#server.keepAlive(alive)
    for (const one of [this.#session, this.#asking])
      void one?.then(
        (session) => session.keepAlive(alive),
        () => {},
      )
  }

  async end(): Promise<void> {
    const ending = [this.#session, this.#asking].map(async (one) => {
      const session = await one?.catch(() => undefined)
      // Calls to a server that does not answer would be retried for longer.
      if (session !== undefined) await within(RELEASE_MS, session.release())
      session?.close()
    })
    // A session that is still being opened is closed when it is open.
    await within(RELEASE_MS, Promise.all(ending))
    for (const session of this.#forgotten) session.close()
    await this.#server.release(true)
  }

  #equipped(): Promise<ConnectSession> {
    return (this.#session ??= this.#equip().catch((error: Error) => {
      this.#session = undefined
      throw error
    }))
  }

  async #equip(): Promise<ConnectSession> {
    const session = await this.#open()
    await session.setConfig(SETTINGS)
    return session
  }

  async #open(): Promise<ConnectSession> {
    const session = await this.#server.newSession()
    session.keepAlive(this.#alive)
    return session
  }
}
