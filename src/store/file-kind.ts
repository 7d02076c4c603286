import { closeSync, openSync, readSync } from 'node:fs'

/** Enough bytes to tell text from binary data. */
const LOOK_BYTES = 4096

/** First bytes of well-known kinds of files. */
const BEGINNINGS: readonly (readonly [beginning: string, kind: string])[] = [
  ['\x89PNG', 'a PNG image'],
  ['\xff\xd8\xff', 'a JPEG image'],
  ['GIF8', 'a GIF image'],
  ['%PDF', 'a PDF document'],
  ['PK\x03\x04', 'a ZIP archive'],
  ['\x1f\x8b', 'a gzip file'],
  ['\x28\xb5\x2f\xfd', 'a Zstandard file'],
  ['PAR1', 'a Parquet file'],
  ['DUCK', 'a DuckDB database'],
  ['\x7fELF', 'a program'],
]

/**
 * Describes a file that is not a SQLite file, such as "a PNG image". Undefined if its kind is unknown: it may be a
 * damaged store.
 */
export function fileKind(path: string): string | undefined {
  const bytes = beginning(path)
  if (bytes === undefined || bytes.length === 0) return undefined
  const start = bytes.toString('latin1', 0, 16)
  // DuckDB has a checksum before its name.
  const known = BEGINNINGS.find(([begins, kind]) => start.startsWith(begins, kind.startsWith('a DuckDB') ? 8 : 0))
  if (known) return known[1]
  return isText(bytes) ? 'a text file' : undefined
}

function beginning(path: string): Buffer | undefined {
  let file: number | undefined
  try {
    file = openSync(path, 'r')
    const bytes = Buffer.alloc(LOOK_BYTES)
    return bytes.subarray(0, readSync(file, bytes, 0, LOOK_BYTES, 0))
  } catch {
    return undefined
  } finally {
    if (file !== undefined) closeSync(file)
  }
}

/** Whether the bytes are UTF-8 without control characters that text does not use. The last character may be cut in two. */
function isText(bytes: Buffer): boolean {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes, { stream: true })
    // biome-ignore lint/suspicious/noControlCharactersInRegex: binary files have them, text has not
    return !/[\x00-\x08\x0e-\x1a\x1c-\x1f]/.test(text)
  } catch {
    return false
  }
}
