import { limit, type Relation, sql } from '../connect/plans.ts'
import type { ConnectSession } from '../connect/session.ts'

/**
 * Spark holds the results of a query until they are fetched, and refuses those above `spark.driver.maxResultSize` (1 GB). An
 * eighth of that leaves room for rows that are larger than those of the sample.
 */
const SLICE_BYTES = 128 * 1024 * 1024
const SAMPLE_ROWS = 200

export interface Slices {
  readonly parts: readonly Relation[]
  /** How many rows there are in all, where that was counted. */
  readonly rows: number | undefined
}

/** `wanted`: how many; if it is not said, as many as the size of the rows asks for. */
export async function slicesOf(
  session: ConnectSession,
  source: Relation,
  idColumn: string,
  wanted: number | undefined,
): Promise<Slices> {
  const rows = await countOf(session, source)
  const count = wanted ?? Math.ceil((await bytesOf(session, source, rows)) / SLICE_BYTES)
  if (count <= 1) return { parts: [source], rows: undefined }
  const query = `SELECT * FROM {source} WHERE pmod(xxhash64(${quoted(idColumn)}), ${count}) = `
  return { parts: Array.from({ length: count }, (_, slice) => sql(query + slice, { source })), rows }
}

async function countOf(session: ConnectSession, source: Relation): Promise<number> {
  for await (const { rows } of session.rows(sql('SELECT count(*) AS rows FROM {source}', { source })))
    return Number(rows)
  return 0
}

/** What they take on their way, by the first ones. */
async function bytesOf(session: ConnectSession, source: Relation, rows: number): Promise<number> {
  let bytes = 0
  for await (const batch of session.execute(limit(source, SAMPLE_ROWS))) bytes += batch.length
  return bytes * Math.max(1, rows / SAMPLE_ROWS)
}

/** A name as SQL has it. */
export const quoted = (name: string): string => `\`${name.replaceAll('`', '``')}\``
