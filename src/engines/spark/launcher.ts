import { ManyworldsError } from '../../errors.ts'

/** Printed by the launcher, followed by host and name, if Node.js is missing. */
export const NODE_NOT_FOUND = 'NODE_NOT_FOUND'

/**
 * The query whose rows are slots: each row is a partition, for which our program runs as long as we want. `{slots}` has the
 * columns `slot`, `orders` and `program`. The text contains no secret: Spark's UI shows queries.
 *
 * The program comes with the row. As an artifact it would belong to the whole application if sessions are not isolated, and
 * other drivers would miss it once our session is gone.
 */
export function slotQuery(nodeBinary: string): string {
  const delimited = "ROW FORMAT DELIMITED FIELDS TERMINATED BY '\\t'"
  return `SELECT TRANSFORM(slot, orders, program) ${delimited} USING '${script(nodeBinary)}' AS (slot STRING, word STRING) ${delimited} FROM {slots}`
}

/**
 * `exec`, so that the program is a child of the executor. On failure, sleep briefly so that Spark reads stderr before it sees
 * the exit. No single quotes and no backslashes: the script is inside an SQL string.
 */
const script = (nodeBinary: string) => `n="${nodeBinary}"
command -v "$n" >/dev/null || { echo "${NODE_NOT_FOUND} $(hostname) $n" >&2; sleep 0.5; exit 127; }
exec "$n" -e "$(cat <<"END"
${LOADER}
END
)" manyworlds-slot`

/**
 * Reads the program from the first row and writes it to a new folder that only this user can write to (the current folder may
 * be writable for everybody). The program removes the folder. The rest of the row is left where `host/slot.ts` expects it.
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

/** Checked because it becomes part of a script in a query. */
export const isNodeBinary = (path: string): boolean => /^[\w./+@:~ -]+$/.test(path)

export function checkNodeBinary(nodeBinary: string): void {
  if (isNodeBinary(nodeBinary)) return
  throw new ManyworldsError(
    'CONFIG_INVALID',
    `spark.nodeBinary must be the name or path of a program, of letters, digits, spaces and . / + @ : ~ _ -; it is '${nodeBinary}'`,
  )
}
