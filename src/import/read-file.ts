import { readdirSync, readFileSync, statSync } from 'node:fs'
import { basename, join } from 'node:path'
import { DataError, type DataPlace } from '../data/data-error.ts'
import { fromJsonl } from '../data/jsonl.ts'
import { checkAtif, withoutNulls } from '../export/atif/check.ts'
import type { AtifTrajectory } from '../export/atif/document.ts'
import { bytes } from '../text/quantities.ts'
import { fromDocument } from './from-document.ts'
import { checkMessages, fromMessages } from './from-messages.ts'
import type { ImportFormat } from './import-formats.ts'
import { type ImportedTrajectory, problemsOf } from './imported-trajectory.ts'

/** The largest size of a document or a line of JSONL. Larger ones are refused, because they are held in memory. */
const MOST_BYTES = 256 * 1024 * 1024
const MOST_PROBLEMS = 3

/**
 * Reads the trajectories of a file: JSONL, a JSON file with one document or a list of them, or a folder of JSON files. Checks
 * each of them; throws a `DataError` with the location of the first invalid one.
 */
export async function* readTrajectories(
  path: string,
  format: ImportFormat | undefined,
): AsyncGenerator<ImportedTrajectory> {
  const ids = new Map<string, DataPlace>()
  let known = format
  let number = 0
  for await (const { value, place } of valuesIn(path)) {
    known ??= formatOf(value, place)
    const imported = trajectoryIn(value, known, place, `#${++number}`)
    const before = ids.get(imported.id)
    if (before)
      throw wrong(place, [`its id '${imported.id.slice(0, 80)}' is already used at ${before.file}:${before.line ?? 1}`])
    ids.set(imported.id, place)
    yield imported
  }
  if (number === 0) throw wrong({ file: path }, ['the file contains no trajectory'])
}

interface Found {
  readonly value: unknown
  readonly place: DataPlace
}

async function* valuesIn(path: string): AsyncGenerator<Found> {
  const files = filesIn(path)
  for (const file of files) {
    if (files.length === 1 && !file.endsWith('.json')) {
      yield* fromJsonl(file, (value: unknown, { line }): Found => ({ value, place: { file, line } }), {
        maxRowBytes: MOST_BYTES,
      })
      continue
    }
    const value = jsonIn(file)
    if (Array.isArray(value)) for (const one of value) yield { value: one, place: { file } }
    else yield { value, place: { file } }
  }
}

function filesIn(path: string): string[] {
  try {
    if (!statSync(path).isDirectory()) return [path]
    const names = readdirSync(path).filter((name) => name.endsWith('.json'))
    return names.sort().map((name) => join(path, name))
  } catch (cause) {
    throw new DataError('DATA_UNREADABLE', { file: path }, (cause as Error).message, { cause })
  }
}

function jsonIn(file: string): unknown {
  const { size } = statSync(file)
  if (size > MOST_BYTES)
    throw wrong({ file }, [
      `the file has ${bytes(size)}, but at most ${bytes(MOST_BYTES)} can be read at once; convert it to JSONL`,
    ])
  try {
    return JSON.parse(readFileSync(file, 'utf8'))
  } catch (cause) {
    throw new DataError('DATA_INVALID', { file }, `not valid JSON: ${(cause as Error).message}`, { cause })
  }
}

function formatOf(value: unknown, place: DataPlace): ImportFormat {
  const fields = typeof value === 'object' && value !== null ? value : {}
  if ('schema_version' in fields) return 'atif'
  if ('messages' in fields) return 'sft'
  throw wrong(place, ['unknown format: it has neither `schema_version` (ATIF) nor `messages` (SFT)'])
}

function trajectoryIn(value: unknown, format: ImportFormat, place: DataPlace, id: string): ImportedTrajectory {
  const problems = (found: readonly string[]) => {
    if (found.length > 0) throw wrong(place, found)
  }
  const named = place.line === undefined ? basename(place.file, '.json') : id
  if (format === 'sft') problems(checkMessages(value))
  const document = format === 'atif' ? withoutNulls(value) : undefined
  if (format === 'atif') problems(checkAtif(document))
  const imported =
    format === 'sft' ? fromMessages(value as never, named) : fromDocument(document as AtifTrajectory, named)
  problems(problemsOf(imported))
  return imported
}

function wrong(place: DataPlace, problems: readonly string[]): DataError {
  const more = problems.length > MOST_PROBLEMS ? `; and ${problems.length - MOST_PROBLEMS} more` : ''
  return new DataError('DATA_INVALID', place, problems.slice(0, MOST_PROBLEMS).join('; ') + more)
}
