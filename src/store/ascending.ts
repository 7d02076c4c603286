/**
 * Returns the key of a row that is read after another. Throws if it is not larger, as in a damaged file: a reader that goes on from
 * such a key would read the same rows without end.
 */
export function nextKey(key: unknown, after: number, what: string): number {
  if (typeof key === 'number' && key > after) return key
  throw new Error(`${what} has the key ${String(key)}, which does not come after ${after}`)
}

/** Checks that the keys of a page of rows grow. */
export function ascending<Row>(rows: readonly Row[], keyOf: (row: Row) => unknown, after: number, what: string): Row[] {
  let last = after
  for (const row of rows) last = nextKey(keyOf(row), last, what)
  return rows as Row[]
}
