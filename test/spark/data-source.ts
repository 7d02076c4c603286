import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Relation, readParquet, readTable, sql, writeCommand } from '../../dist/engines/spark/connect/plans.js'
import type { ConnectSession } from '../../dist/engines/spark/connect/session.js'
import { openServer } from '../../dist/engines/spark/server.js'
import type { SparkOptions } from '../../dist/index.js'

export type Row = Record<string, unknown>

/** A Spark on this machine, held for the tests of a file, and a folder for its data. */
export interface DataSpark {
  /** What says to use it. */
  readonly on: { readonly inLocal: true; readonly spark: SparkOptions }
  path(name: string): string
  /** Parquet files of a query. */
  makeParquet(name: string, query: string): Promise<string>
  query(text: string): Promise<Row[]>
  readParquet(path: string): Promise<Row[]>
  readTable(name: string): Promise<Row[]>
  stop(): Promise<void>
}

export async function startDataSpark(workers: number, conf: Record<string, string> = {}): Promise<DataSpark> {
  const folder = mkdtempSync(join(tmpdir(), 'mw-spark-data-'))
  const spark = { conf: { 'spark.sql.warehouse.dir': join(folder, 'warehouse'), ...conf } }
  const server = await openServer(spark, true, workers, () => {})
  const path = (name: string) => join(folder, name)
  // A session each: one that is idle may be forgotten.
  async function inSession<T>(work: (session: ConnectSession) => Promise<T>): Promise<T> {
    const session = await server.newSession()
    try {
      return await work(session)
    } finally {
      await session.release()
      session.close()
    }
  }
  const rows = (relation: Relation) =>
    inSession(async (session) => {
      const found: Row[] = []
      for await (const row of session.rows(relation)) found.push(row)
      return found
    })
  return {
    ...{ on: { inLocal: true, spark }, path },
    makeParquet: async (name, query) => {
      const write = writeCommand({ relation: sql(query), to: { parquet: path(name) }, mode: 'overwrite' })
      await inSession((session) => session.run(write))
      return path(name)
    },
    query: (text) => rows(sql(text)),
    readParquet: (where) => rows(readParquet(where)),
    readTable: (name) => rows(readTable(name)),
    stop: async () => {
      await server.release(true)
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
