import { zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import type { CachedReply } from '../models/driver/cache.ts'
import { MAX_VALUE_BYTES } from '../protocol/pack.ts'
import type { CachedRow } from './messages.ts'
import type { StoreDb } from './store-db.ts'
import { storeError } from './store-errors.ts'
import { type Columns, checkedRow, isAnything, isFields, isText, isTime, isWhole } from './stored-shapes.ts'

/** A body of up to this many characters is stored as text, which any SQLite tool can read. A longer one is compressed. */
const INLINE_CHARS = 4096
/** The time of last use is updated at most this often, so that most lookups write nothing. */
const NOTE_USE_MS = 60 * 60 * 1000
/** The most that one transaction removes, so that other drivers can write in between. */
const PIECE_ROWS = 1000
const PIECE_BYTES = 16 * 1024 * 1024

/** A row of the model reply cache. Rows belong to no run and use no blobs, so they stay when the run that made them is removed. */
interface ReplyColumns {
  readonly reply: number
  readonly usedAt: number
  readonly status: number
  readonly headers: string
  readonly size: number
  /** Text, or zstd-compressed bytes. */
  readonly body: unknown
}

const REPLY: Columns<ReplyColumns> = {
  reply: isWhole,
  usedAt: isTime,
  status: isWhole,
  headers: isText,
  size: (size) => isWhole(size) && (size as number) <= MAX_VALUE_BYTES,
  body: isAnything,
}

const FIND = 'SELECT reply, used_at AS usedAt, status, headers, size, body FROM _cache WHERE key = ?'
/** Two drivers may have made the same call at the same time: the first reply wins. */
const INSERT = `INSERT INTO _cache (key, model, at, used_at, status, headers, size, body) VALUES (?1, ?2, ?3, ?3, ?4, ?5, ?6, ?7)
  ON CONFLICT (key) DO NOTHING`

/** Call it inside a transaction. */
export function writeReply(store: StoreDb, [, key, model, at, status, headers, body]: CachedRow): void {
  const isShort = body.length <= INLINE_CHARS
  const stored = isShort ? body : zstdCompressSync(body)
  store.statement(INSERT).run(key, model, at, status, headers, Buffer.byteLength(body), stored)
}

/** Finds the replies with these keys; undefined for each key that has none. */
export function lookUp(store: StoreDb, keys: readonly Uint8Array[]): (CachedReply | undefined)[] {
  try {
    const rows = keys.map((key) => {
      const row = store.statement(FIND).get(key)
      return row && checkedRow(row, REPLY, 'a cached reply')
    })
    noteUse(store, rows)
    return rows.map((row) => row && { status: row.status, headers: headersOf(row.headers), body: bodyOf(row) })
  } catch (error) {
    throw storeError(error, store.path, 'read')
  }
}

function bodyOf({ body, size }: ReplyColumns): string {
  if (typeof body === 'string') return body
  if (!(body instanceof Uint8Array)) throw new Error('the body of a cached reply is neither text nor bytes')
  // The file may be hostile: a few bytes of zstd can expand to gigabytes.
  const bytes = zstdDecompressSync(body, { maxOutputLength: Math.max(1, size) })
  if (bytes.byteLength !== size) throw new Error(`a cached reply has ${bytes.byteLength} bytes instead of ${size}`)
  return bytes.toString()
}

function headersOf(json: string): Record<string, string> {
  const headers: unknown = JSON.parse(json)
  if (!isFields(headers) || !Object.values(headers).every(isText))
    throw new Error('the headers of a cached reply are not an object of strings')
  return headers as Record<string, string>
}

function noteUse(store: StoreDb, rows: readonly (ReplyColumns | undefined)[]): void {
  const now = Date.now()
  const used = rows.filter((row) => row !== undefined && row.usedAt < now - NOTE_USE_MS)
  if (used.length === 0) return
  try {
    const note = 'UPDATE _cache SET used_at = ? WHERE reply = ?'
    store.transact(false, () => {
      for (const row of used) store.statement(note).run(now, row!.reply)
    })
  } catch {
    // The replies are usable all the same. If the update is lost, `keep: { days }` may remove them too early.
  }
}

/** Counts the replies that were last used before this time, and their bytes. */
export function countReplies(store: StoreDb, before: number): { replies: number; bytes: number } {
  const sql = 'SELECT count(*) AS replies, coalesce(sum(octet_length(body)), 0) AS bytes FROM _cache WHERE used_at < ?'
  return { ...(store.statement(sql).get(before) as { replies: number; bytes: number }) }
}

/** Whether any reply was last used before this time. */
export const hasReplies = (store: StoreDb, before: number): boolean =>
  store.statement('SELECT 1 FROM _cache WHERE used_at < ? LIMIT 1').get(before) !== undefined

/** Removes replies that were last used before this time, in one transaction. Returns true if there may be more. */
export function removeReplies(store: StoreDb, before: number): boolean {
  const oldest = `SELECT reply, octet_length(body) AS bytes FROM _cache WHERE used_at < ? ORDER BY used_at LIMIT ${PIECE_ROWS}`
  return store.transact(false, () => {
    let bytes = 0
    const rows = store.statement(oldest).all(before) as { reply: number; bytes: number }[]
    for (const row of rows) {
      if (bytes > PIECE_BYTES) return true
      bytes += row.bytes
      store.statement('DELETE FROM _cache WHERE reply = ?').run(row.reply)
    }
    return rows.length === PIECE_ROWS
  })
}
