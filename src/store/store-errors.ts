import { accessSync, closeSync, constants, openSync, statfsSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { ManyworldsError } from '../errors.ts'
import { fileKind } from './file-kind.ts'

/** Result codes of SQLite; the low byte is the primary code. */
const ERROR = 1
const BUSY = 5
const LOCKED = 6
const PERM = 3
const READONLY = 8
const IOERR = 10
const CORRUPT = 11
const FULL = 13
const CANTOPEN = 14
const CONSTRAINT = 19
const MISMATCH = 20
const NOTADB = 26

/** With less free space than this, SQLite cannot create its next file. */
const NO_SPACE_BYTES = 64 * 1024

const kindOf = (error: unknown): number => ((error as { errcode?: number })?.errcode ?? 0) & 0xff

export const isBusy = (error: unknown): boolean => [BUSY, LOCKED].includes(kindOf(error))

/** A constraint failed: a duplicate key, or a value of the wrong type. */
export const isConflict = (error: unknown): boolean => [CONSTRAINT, MISMATCH].includes(kindOf(error))

export const cannotOpen = (error: unknown): boolean => kindOf(error) === CANTOPEN

export const isFull = (error: unknown): boolean => kindOf(error) === FULL || isNoSpace(error)

const isNoSpace = (error: unknown) => ['ENOSPC', 'EDQUOT'].includes((error as NodeJS.ErrnoException)?.code ?? '')

/** Turns any error into a ManyworldsError of one line that says what to do. */
export function storeError(error: unknown, path: string, doing: 'open' | 'write' | 'read'): ManyworldsError {
  if (ManyworldsError.is(error)) return error
  const { message, code } = error as NodeJS.ErrnoException
  const make = (kind: ManyworldsError['code'], text: string) => new ManyworldsError(kind, text, { cause: error })
  switch (kindOf(error)) {
    case FULL:
      return make('STORE_FULL', `the disk is full (SQLITE_FULL): cannot write the run file ${path}. ${AFTER_SPACE}`)
    case BUSY:
    case LOCKED:
      return make(
        'STORE_FAILED',
        `another process holds the write lock of ${path} (SQLite: ${message}); run \`fuser ${path}\` to find it. ${KEPT}`,
      )
    case NOTADB: {
      const kind = fileKind(path)
      return kind === undefined ? corrupt(path, message, error) : notAStore(path, kind, error)
    }
    case CORRUPT:
    case CONSTRAINT:
    case MISMATCH:
      return corrupt(path, message, error)
    case PERM:
    case READONLY:
    case CANTOPEN:
      if (tooManyFiles())
        return make(
          'STORE_FAILED',
          `cannot open ${path}: the process has too many open files (EMFILE, see \`ulimit -n\`). ${FEWER_RUNS}`,
        )
      if (isFolder(path)) return notAStore(path, 'a folder', error)
      if (doing === 'read') return make('STORE_NOT_WRITABLE', `cannot read ${path} (${message}). ${READABLE(path)}`)
      return make(
        'STORE_NOT_WRITABLE',
        `cannot ${doing} the run file ${path} (${whyNot(path) ?? message}). ${ELSEWHERE}`,
      )
    case IOERR:
      // SQLite reports a full disk as SQLITE_IOERR for its -shm file.
      if (noSpaceAt(path))
        return make('STORE_FULL', `the disk is full: cannot write the run file ${path}. ${AFTER_SPACE}`)
      return make('STORE_FAILED', `cannot ${doing} the run file ${path}: ${message}. ${KEPT}`)
  }
  if (isNoSpace(error))
    return make('STORE_FULL', `the disk is full (${code}): cannot create the run file ${path}. ${AFTER_SPACE}`)
  if (['EACCES', 'EPERM', 'EROFS', 'ENOTDIR', 'ENOENT', 'EEXIST', 'ENAMETOOLONG', 'ELOOP'].includes(code ?? ''))
    return make('STORE_NOT_WRITABLE', `cannot ${doing} the run file ${path} (${message}). ${ELSEWHERE}`)
  // An integer beyond 2^53. We never write one.
  if (code === 'ERR_OUT_OF_RANGE') return corrupt(path, message, error)
  if (doing !== 'write' && isAboutContent(error)) return corrupt(path, message, error)
  return make('STORE_FAILED', `cannot ${doing} the run file ${path}: ${message}. ${KEPT}`)
}

/** Whether the error is about the content of the file (JSON, zstd, v8, our own checks) rather than the disk or the system. */
function isAboutContent(error: unknown): boolean {
  const { code, syscall } = error as NodeJS.ErrnoException
  // A closed connection says nothing about the content.
  return [0, ERROR].includes(kindOf(error)) && syscall === undefined && code !== 'ERR_INVALID_STATE'
}

/** RUN_LOCKED, with the process that owns the run if it is known. */
export function locked(
  path: string,
  by: { runId: string; pid: number; host: string; startedAt: number } | undefined,
): ManyworldsError {
  const who = by ? `process ${by.pid} on ${by.host}, since ${new Date(by.startedAt).toISOString()}` : 'another driver'
  const what = by ? `run '${by.runId}' (${path})` : path
  return new ManyworldsError(
    'RUN_LOCKED',
    `${what} is in use by ${who}. Only one driver may write a run: wait for it to end, or stop it`,
  )
}

/** SQLite quotes what it read in its messages, which may have several lines. */
export const corrupt = (path: string, detail: string, cause?: unknown): ManyworldsError =>
  new ManyworldsError(
    'STORE_CORRUPT',
    `${path} is damaged or is not a manyworlds store (${detail.replaceAll(/\s+/g, ' ')}). It was not changed; \`sqlite3 ${path} .recover\` extracts the rows that are still readable. Move the file away, or use another folder: \`store\` (--store)`,
    { cause },
  )

/** For an intact file of another kind, which has nothing to recover. */
export const notAStore = (path: string, kind: string, cause?: unknown): ManyworldsError =>
  new ManyworldsError(
    'NOT_A_STORE',
    `${path} is ${kind}, not a manyworlds store. It was not changed. Name a folder, or the path of a store: \`store\` (--store, --dir, MANYWORLDS_STORE)`,
    { cause },
  )

function noSpaceAt(path: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(dirname(path))
    return bavail * bsize < NO_SPACE_BYTES
  } catch {
    return false
  }
}

/** Why the folder cannot be written: SQLite only says that it cannot open the file. */
function whyNot(path: string): string | undefined {
  try {
    accessSync(dirname(path), constants.W_OK)
    return undefined
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    return code === 'EROFS' ? `the file system is read-only, ${message}` : message
  }
}

const isFolder = (path: string) => statSync(path, { throwIfNoEntry: false })?.isDirectory() === true

/** SQLite reports EMFILE only as SQLITE_CANTOPEN. */
function tooManyFiles(): boolean {
  try {
    closeSync(openSync('/dev/null', 'r'))
    return false
  } catch (error) {
    return ['EMFILE', 'ENFILE'].includes((error as NodeJS.ErrnoException).code ?? '')
  }
}

const FEWER_RUNS = 'Run fewer runs at once, or use `store: false`'
const AFTER_SPACE = 'Committed results are safe: free some space and resume the run'
const KEPT = 'Committed results are safe: fix the problem and resume the run'
const READABLE = (path: string) =>
  `Check its permissions. If its folder is read-only and a driver was killed there, copy the file together with ${path}-wal to another folder`
const ELSEWHERE =
  'Use another folder: `store: "path"` (--store, MANYWORLDS_STORE), or no store: `store: false` (--no-store)'
