import { limit, type Relation, sql } from '../connect/plans.ts'
import type { ConnectSession } from '../connect/session.ts'

/**
 * Spark holds the results of a query until they are fetched, and refuses those above `spark.driver.maxResultSize` (1 GB). An
 * eighth of that leaves room for rows that are larger than those of the sample.
 */
const SLICE_BYTES = 128 * 1024 * 1024
const SAMPLE_ROWS = 200

/** The queries that together give all rows of a source. */
export interface Slices {
  readonly parts: readonly Part[]
}

interface Part {
  readonly query: Relation
  /** The number of rows it must give. Undefined for a source that is read by one query: nothing can be missing then. */
  readonly rows?: number
}

export const oneSlice = (source: Relation): Slices => ({ parts: [{ query: source }] })

/**
 * Divides the rows by the hash of their id. Without `wanted`, there are as many slices as the size of the rows requires.
 *
 * Slices are counted one by one, in one query: a source that gives other rows each time (`LIMIT`, `rand`) may well have the same number of
 * rows in all, with some rows in two slices and others in none.
 */
export async function slicesOf(
  session: ConnectSession,
  source: Relation,
  idColumn: string,
  wanted: number | undefined,
): Promise<Slices> {
  const count = wanted ?? Math.ceil((await estimateBytes(session, source)) / SLICE_BYTES)
  if (count <= 1) return oneSlice(source)
  const slice = `pmod(xxhash64(${quoted(idColumn)}), ${count})`
  const counts = new Map<number, number>()
  const query = `SELECT slice, count(*) AS rows FROM (SELECT ${slice} AS slice FROM {source}) GROUP BY slice`
  for await (const row of session.rows(sql(query, { source }))) counts.set(Number(row.slice), Number(row.rows))
  return {
    parts: Array.from({ length: count }, (_, index) => ({
      query: sql(`SELECT * FROM {source} WHERE ${slice} = ${index}`, { source }),
      rows: counts.get(index) ?? 0,
    })),
  }
}

/** The size of all rows on the wire, estimated from the first ones. */
async function estimateBytes(session: ConnectSession, source: Relation): Promise<number> {
  let rows = 0
  for await (const row of session.rows(sql('SELECT count(*) AS rows FROM {source}', { source })))
    rows = Number(row.rows)
  let bytes = 0
  for await (const batch of session.execute(limit(source, SAMPLE_ROWS))) bytes += batch.length
  return bytes * Math.max(1, rows / SAMPLE_ROWS)
}

/** A name as an SQL identifier. */
export const quoted = (name: string): string => `\`${name.replaceAll('`', '``')}\``
