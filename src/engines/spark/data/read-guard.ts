import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { SparkPlace } from './source.ts'

/** Tracks what is being read, so that a sink does not overwrite its own source. */

interface Data {
  readonly table?: string
  readonly parquet?: string | readonly string[]
}

interface Use {
  readonly names: readonly string[]
  readonly spark: string
  /** When the read ended, by `performance.now()`; infinite while it goes on. */
  until: number
}

const uses = new Set<Use>()

/** Marks data as being read until the returned function is called. */
export function inUse(data: Data, place: SparkPlace): () => void {
  const use: Use = { names: namesOf(data), spark: sparkOf(place), until: Number.POSITIVE_INFINITY }
  // An earlier, finished read of the same data adds nothing.
  for (const old of uses)
    if (old.until < use.until && old.spark === use.spark && `${old.names}` === `${use.names}`) uses.delete(old)
  if (use.names.length > 0) uses.add(use)
  return () => {
    use.until = performance.now()
  }
}

/**
 * Whether any of the data was being read at that time or later. A finished read counts too: a small source is read to its end
 * before its first response arrives.
 */
export function wasReadSince(began: number, data: Data, place: SparkPlace): boolean {
  const [names, spark] = [namesOf(data), sparkOf(place)]
  for (const use of uses) {
    if (use.spark !== spark || use.until < began) continue
    if (use.names.some((one) => names.some((other) => overlap(one, other)))) return true
  }
  return false
}

function namesOf({ table, parquet = [] }: Data): string[] {
  if (table !== undefined) return [`table ${table.replaceAll('`', '').toLowerCase()}`]
  return (typeof parquet === 'string' ? [parquet] : parquet).map(pathName)
}

/** An absolute path. If it ends with a pattern, the folder in which Spark looks for matches. */
function pathName(path: string): string {
  const fixed = path.replace(/[^/]*[*?[{].*$/, '').replace(/(?<=.)\/+$/, '')
  if (/^file:\/\//.test(fixed)) return fileURLToPath(fixed)
  if (/^file:/.test(fixed)) return resolve(fixed.slice('file:'.length))
  return /^\w[\w+.-]*:/.test(fixed) ? fixed : resolve(fixed)
}

function overlap(one: string, other: string): boolean {
  if (one === other) return true
  if (one.startsWith('table ') || other.startsWith('table ')) return sameTable(one, other) || sameTable(other, one)
  return one.startsWith(`${other}/`) || other.startsWith(`${one}/`)
}

/** `answers` may mean `default.answers`. */
const sameTable = (long: string, short: string) => long.endsWith(`.${short.replace('table ', '')}`)

const sparkOf = ({ inLocal, spark }: SparkPlace) =>
  inLocal ? 'local' : (spark?.remote ?? process.env.SPARK_REMOTE ?? '')
