import { createHash } from 'node:crypto'
import { ManyworldsError } from '../../errors.ts'

/** What the launcher says, with JSON behind it, where there is no Node. */
export const NODE_NOT_FOUND = 'NODE_NOT_FOUND'
/** What it says where Spark has not brought the program. */
export const PROGRAM_NOT_FOUND = 'SLOT_PROGRAM_NOT_FOUND'

/** By content: two versions can be there at once. */
export const programName = (program: Uint8Array): string =>
  `manyworlds-slot-${createHash('sha256').update(program).digest('hex').slice(0, 16)}.mjs`

/**
 * The query whose rows are slots: each is a partition, and what runs for it is our program, for as long as we want. `{slots}` has
 * the columns `slot` and `orders`. Nothing in it is secret: Spark shows queries to everybody who may look.
 */
export function slotQuery(program: string, nodeBinary: string): string {
  const delimited = "ROW FORMAT DELIMITED FIELDS TERMINATED BY '\\t'"
  return `SELECT TRANSFORM(slot, orders) ${delimited} USING '${script(program, nodeBinary)}' AS (slot STRING, word STRING) ${delimited} FROM {slots}`
}

/**
 * Spark runs it with bash, in the folder of the session's files or in the one above it. `exec`, so that the program is a child of
 * the executor. No quotes of SQL in it, and nothing that Spark would take for a variable.
 */
function script(program: string, nodeBinary: string): string {
  return [
    `n="${nodeBinary}"`,
    `command -v "$n" >/dev/null || { echo "${NODE_NOT_FOUND} $(hostname) $n" >&2; exit 127; }`,
    `for f in ./${program} ./*/${program}; do [ -f "$f" ] && exec "$n" "$f"; done`,
    `echo "${PROGRAM_NOT_FOUND} $(hostname) $PWD" >&2; exit 86`,
  ].join('; ')
}

/** It becomes part of a script in a query. */
export const isNodeBinary = (path: string): boolean => /^[\w./+@:~ -]+$/.test(path)

export function checkNodeBinary(nodeBinary: string): void {
  if (isNodeBinary(nodeBinary)) return
  throw new ManyworldsError(
    'CONFIG_INVALID',
    `spark.nodeBinary must be the name or path of a program, of letters, digits, spaces and . / + @ : ~ _ -, it is '${nodeBinary}'`,
  )
}
