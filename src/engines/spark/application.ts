import { SparkError } from './connect/errors.ts'
import { localRelation, sql } from './connect/plans.ts'
import { parseRemote, showRemote } from './connect/remote.ts'
import type { ConnectSession } from './connect/session.ts'
import { slotQuery } from './launcher.ts'
import { findRoom, type Room } from './room.ts'
import type { Server } from './server.ts'
import { makeSlotProgram } from './slot-program.ts'

/** Spark's own, for a session of ours. */
const SETTINGS = {
  // Each row is a partition: as many as there are rows.
  'spark.sql.leafNodeDefaultParallelism': '100000',
}

/** What slots say when they end is one word; what something else says that runs in their place is for an error. */
const PRINTED_CHARS = 500

/** What Spark does for the engine: it runs queries whose rows are slots, and says how many there can be. */
export class Application {
  readonly #server: Server
  readonly #nodeBinary: string
  #session: Promise<ConnectSession> | undefined
  /** For questions: what the other is set to would be in the answers. */
  #asking: Promise<ConnectSession> | undefined
  /** Sessions that the server does not know any more. Other queries may still find out. */
  readonly #forgotten: ConnectSession[] = []
  #alive = true

  constructor(server: Server, nodeBinary: string) {
    this.#server = server
    this.#nodeBinary = nodeBinary
  }

  /** How people know it. */
  get name(): string {
    return showRemote(parseRemote(this.#server.remote))
  }

  /** Opens the session in which slots are asked for, if there is none. */
  async prepare(): Promise<void> {
    await this.#equipped()
  }

  findRoom(): Promise<Room> {
    return this.ask(findRoom)
  }

  /** Has a question answered that no slot is needed for. After a failure, the next one is asked in a new session. */
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
   * Asks for slots. Resolves with what they have printed when all of them have ended as they should, rejects when Spark gives
   * them up.
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
      // A server that was started anew knows nothing of it.
      const forgotten = error instanceof SparkError && /^INVALID_HANDLE\.SESSION/.test(error.errorClass ?? '')
      if (forgotten && this.#session === equipped) {
        this.#session = undefined
        this.#forgotten.push(session)
      }
      throw error
    }
  }

  /** Spark starts no more slots. Those that run are not ended by it: it only stops to wait for them. */
  async interrupt(): Promise<void> {
    const session = await this.#session?.catch(() => undefined)
    await session?.interrupt().catch(() => {})
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
    const sessions = await Promise.all([this.#session, this.#asking].map((one) => one?.catch(() => undefined)))
    await Promise.all(
      sessions.map(async (session) => {
        await session?.release()
        session?.close()
      }),
    )
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
