import { ManyworldsError } from '../../errors.ts'

/** What the launcher says, with the host and the name behind it, where there is no Node. */
export const NODE_NOT_FOUND = 'NODE_NOT_FOUND'

/**
 * The query whose rows are slots: each is a partition, and what runs for it is our program, for as long as we want. `{slots}` has
 * the columns `slot`, `orders` and `program`. Nothing in the text is secret: Spark shows queries to everybody who may look.
 *
 * The program comes with the row. As an artifact it would be the whole application's where sessions are not isolated, and
 * be missed by all others once our session is gone.
 */
export function slotQuery(nodeBinary: string): string {
  const delimited = "ROW FORMAT DELIMITED FIELDS TERMINATED BY '\\t'"
  return `SELECT TRANSFORM(slot, orders, program) ${delimited} USING '${script(nodeBinary)}' AS (slot STRING, word STRING) ${delimited} FROM {slots}`
}

/**
 * `exec`, so that the program is a child of the executor. Who fails waits a little: Spark may not have read what was said when it
 * sees the end. No single quotes and no backslashes: it is within a string of SQL.
 */
const script = (nodeBinary: string) => `n="${nodeBinary}"
command -v "$n" >/dev/null || { echo "${NODE_NOT_FOUND} $(hostname) $n" >&2; sleep 0.5; exit 127; }
exec "$n" -e "$(cat <<"END"
${LOADER}
END
)" manyworlds-slot`

/**
 * Takes the program out of the first row, and puts it into a new folder that only this user can write to, which it removes
 * itself. (The current folder may be one that everybody can write to.) It finds the rest of the row where `host/slot.ts` looks
 * for it.
 */
const LOADER = `const fs = require("fs")
const [row] = fs.readFileSync(0, "utf8").split(String.fromCharCode(10))
const [slot, orders, program] = row.split(String.fromCharCode(9))
if (slot) {
  const path = require("path")
  const folder = fs.mkdtempSync(path.join(require("os").tmpdir(), "manyworlds-slot-"))
  const file = path.join(folder, "slot.mjs")
  fs.writeFileSync(file, require("zlib").brotliDecompressSync(Buffer.from(program, "base64")))
  globalThis.manyworldsSlot = { slot, orders, folder }
  import(file)
}`

/** It becomes part of a script in a query. */
export const isNodeBinary = (path: string): boolean => /^[\w./+@:~ -]+$/.test(path)

export function checkNodeBinary(nodeBinary: string): void {
  if (isNodeBinary(nodeBinary)) return
  throw new ManyworldsError(
    'CONFIG_INVALID',
    `spark.nodeBinary must be the name or path of a program, of letters, digits, spaces and . / + @ : ~ _ -, it is '${nodeBinary}'`,
  )
}
