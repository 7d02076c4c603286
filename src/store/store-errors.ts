import { closeSync, openSync, statfsSync } from 'node:fs'
import { dirname } from 'node:path'
import { ManyworldsError } from '../errors.ts'

/** Result codes of SQLite; the low byte is the kind. */
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

/** With less than this, the next file of SQLite's does not fit. */
const NO_SPACE_BYTES = 64 * 1024

const kindOf = (error: unknown): number => ((error as { errcode?: number })?.errcode ?? 0) & 0xff

export const isBusy = (error: unknown): boolean => [BUSY, LOCKED].includes(kindOf(error))

/** A row does not fit: one with its key is there, or a value has the wrong type. */
export const isConflict = (error: unknown): boolean => [CONSTRAINT, MISMATCH].includes(kindOf(error))

export const cannotOpen = (error: unknown): boolean => kindOf(error) === CANTOPEN

export const isFull = (error: unknown): boolean => kindOf(error) === FULL || isNoSpace(error)

const isNoSpace = (error: unknown) => ['ENOSPC', 'EDQUOT'].includes((error as NodeJS.ErrnoException)?.code ?? '')

/** What went wrong with a run file, in one line that says what to do. */
export function storeError(error: unknown, path: string, doing: 'open' | 'write' | 'read'): ManyworldsError {
  if (ManyworldsError.is(error)) return error
  const { message, code } = error as NodeJS.ErrnoException
  const make = (kind: ManyworldsError['code'], text: string) => new ManyworldsError(kind, text, { cause: error })
  switch (kindOf(error)) {
    case FULL:
      return make('STORE_FULL', `the disk is full: the run file ${path} cannot grow. ${AFTER_SPACE}`)
    case BUSY:
    case LOCKED:
      return make(
        'STORE_FAILED',
        `another process holds ${path} (SQLite: ${message}); \`fuser ${path}\` names it. ${KEPT}`,
      )
    case CORRUPT:
    case CONSTRAINT:
    case MISMATCH:
    case NOTADB:
      return corrupt(path, message, error)
    case PERM:
    case READONLY:
    case CANTOPEN:
      if (tooManyFiles())
        return make(
          'STORE_FAILED',
          `no more files can be opened (\`ulimit -n\`), and so no run file at ${path}. ${FEWER_RUNS}`,
        )
      if (doing === 'read') return make('STORE_NOT_WRITABLE', `${path} cannot be read (${message}). ${READABLE(path)}`)
      return make('STORE_NOT_WRITABLE', `the run file ${path} cannot be ${PAST[doing]} (${message}). ${ELSEWHERE}`)
    case IOERR:
      // Some of SQLite's own files cannot say why.
      if (noSpaceAt(path))
        return make('STORE_FULL', `the disk is full: the run file ${path} cannot grow. ${AFTER_SPACE}`)
      return make('STORE_FAILED', `the run file ${path} cannot be ${PAST[doing]}: ${message}. ${KEPT}`)
  }
  if (isNoSpace(error))
    return make('STORE_FULL', `the disk is full: no run file can be made at ${path}. ${AFTER_SPACE}`)
  if (['EACCES', 'EPERM', 'EROFS', 'ENOTDIR', 'ENOENT', 'EEXIST', 'ENAMETOOLONG', 'ELOOP'].includes(code ?? ''))
    return make('STORE_NOT_WRITABLE', `the run file ${path} cannot be ${PAST[doing]} (${message}). ${ELSEWHERE}`)
  // A number in the file that JavaScript cannot hold; we write none.
  if (code === 'ERR_OUT_OF_RANGE') return corrupt(path, message, error)
  if (doing !== 'write' && isAboutContent(error)) return corrupt(path, message, error)
  return make('STORE_FAILED', `the run file ${path} cannot be ${PAST[doing]}: ${message}. ${KEPT}`)
}

/** Not the disk, nor the system: what stands in the file is not what a run writes (JSON, zstd, v8's bytes, our own checks). */
function isAboutContent(error: unknown): boolean {
  const { code, syscall } = error as NodeJS.ErrnoException
  // A file that was closed says nothing about its content.
  return [0, ERROR].includes(kindOf(error)) && syscall === undefined && code !== 'ERR_INVALID_STATE'
}

/** Somebody else writes the run; who, where that is known. */
export function locked(
  path: string,
  by: { runId: string; pid: number; host: string; startedAt: number } | undefined,
): ManyworldsError {
  const who = by ? `process ${by.pid} on ${by.host}, since ${new Date(by.startedAt).toISOString()}` : 'another driver'
  const what = by ? `run '${by.runId}' (${path})` : path
  return new ManyworldsError(
    'RUN_LOCKED',
    `${what} is being written by ${who}. One driver at a time: wait for it, or stop it`,
  )
}

export const corrupt = (path: string, detail: string, cause?: unknown): ManyworldsError =>
  new ManyworldsError(
    'STORE_CORRUPT',
    `${path} is damaged, or is not a manyworlds store (${detail}). It was left as it is; what can be read of a damaged one comes out with \`sqlite3 ${path} .recover\`. Move it away, or give another folder with \`store\` (--store)`,
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

/** SQLite only says that it cannot open a file. */
function tooManyFiles(): boolean {
  try {
    closeSync(openSync('/dev/null', 'r'))
    return false
  } catch (error) {
    return ['EMFILE', 'ENFILE'].includes((error as NodeJS.ErrnoException).code ?? '')
  }
}

const FEWER_RUNS = 'Every run that is going on has its file: give the tasks to one run, or use `store: false`'
const PAST = { open: 'opened', write: 'written', read: 'read' } as const
const AFTER_SPACE = 'What is in it is safe: make room, and resume the run'
const KEPT = 'What was committed before is safe: resume the run when this is mended'
const READABLE = (path: string) =>
  `Check its permissions. If its folder cannot be written and a driver was killed there, copy the file to another folder, together with ${path}-wal`
const ELSEWHERE =
  'Give another folder with `store: "path"` (--store, MANYWORLDS_STORE), or run without a file: `store: false` (--no-store)'
