import { randomBytes } from 'node:crypto'
import { haveEnded, thisMachine } from '../../network/same-machine.ts'
import { sqlCommand } from './connect/plans.ts'
import type { ConnectSession } from './connect/session.ts'
import type { Member } from './shares.ts'

/** A driver that posts nothing for this long is gone; it posts every one or two seconds. */
const GONE_MS = 15_000
const PREFIX = 'manyworlds_'
const DATABASE = 'spark.sql.globalTempDatabase'
/** A post as `SHOW TABLE EXTENDED` prints it. The pattern is strict because any user of this Spark can write anything there. */
const ENTRY =
  /^View Text: SELECT \* FROM VALUES \('([\w.:-]{1,200})', (\d{1,15}), (\d{1,7}), (\d{1,7}), (\d{1,7}), (\d{1,12}), '(\w{0,64})', (\d{1,10})\)/m

/** Runs SQL on Spark, which may be restarted in between. */
export type Ask = <Answer>(question: (session: ConnectSession) => Promise<Answer>) => Promise<Answer>

/**
 * Where the drivers of a Spark application see each other: each has a global temporary view, whose text says how many cores it
 * has and wants. Such views belong to the application, not to a session. Neither writing nor reading them is a Spark job, so
 * both work when every core is taken.
 */
export class Board {
  readonly #id = `${PREFIX}${randomBytes(8).toString('hex')}`
  readonly #ask: Ask
  /** The last posts of the other drivers, and when each changed. */
  readonly #heard = new Map<string, { beat: string; at: number }>()
  /** The database of global temporary views, from Spark's configuration. */
  #database: string | undefined
  #beat = 0
  #posted = false

  constructor(ask: Ask) {
    this.#ask = ask
  }

  get id(): string {
    return this.#id
  }

  /** Posts what this driver has and wants. Resolves with the posts of the others. */
  async post({ name, since, held, wanted, reserve }: Omit<Member, 'id'>): Promise<Member[]> {
    const shown = `'${name.replace(/[^\w.:-]/g, '-').slice(0, 200)}'`
    const values = [shown, since, held, wanted, reserve, ++this.#beat, `'${thisMachine() ?? ''}'`, process.pid]
    this.#posted = true
    return this.#ask(async (session) => {
      await session.run(
        sqlCommand(
          `CREATE OR REPLACE GLOBAL TEMPORARY VIEW ${this.#id} AS SELECT * FROM VALUES (${values.join(', ')}) AS t(driver, since, held, wanted, reserve, beat, machine, pid)`,
        ),
      )
      return this.#read(session)
    })
  }

  /** Removes this driver's post. Never rejects: others ignore a stale post after a while. */
  async remove(): Promise<void> {
    if (this.#posted) await this.#ask((session) => this.#drop(session, this.#id)).catch(() => {})
  }

  async #read(session: ConnectSession): Promise<Member[]> {
    this.#database ??= (await session.getConfig([DATABASE])).get(DATABASE) ?? 'global_temp'
    const found: Member[] = []
    for await (const { tableName, information } of session.rows(
      sqlCommand(`SHOW TABLE EXTENDED IN ${this.#database} LIKE '${PREFIX}*'`),
    )) {
      const id = String(tableName)
      const [, name, since, held, wanted, reserve, beat, machine, pid] = ENTRY.exec(String(information)) ?? []
      if (id === this.#id || name === undefined) continue
      // The cores of a driver that was killed on this machine need not be waited for.
      if (this.#isAlive(id, beat!) && !haveEnded({ machine, pid: Number(pid) }))
        found.push({
          ...{ id, name, since: Number(since), held: Number(held), wanted: Number(wanted), reserve: Number(reserve) },
        })
      else await this.#drop(session, id)
    }
    return found
  }

  async #drop(session: ConnectSession, id: string): Promise<void> {
    this.#heard.delete(id)
    if (/^\w+$/.test(id)) await session.run(sqlCommand(`DROP VIEW IF EXISTS ${this.#database}.${id}`))
  }

  /** By this driver's own clock: other clocks may be wrong. */
  #isAlive(id: string, beat: string): boolean {
    const heard = this.#heard.get(id)
    if (heard?.beat === beat) return performance.now() - heard.at < GONE_MS
    this.#heard.set(id, { beat, at: performance.now() })
    return true
  }
}
