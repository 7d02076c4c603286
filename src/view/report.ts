import { ManyworldsError } from '../errors.ts'
import { ownPackage } from '../own-package.ts'
import { bytes as bytesText } from '../text/quantities.ts'
import type { Start } from './api.ts'
import { PackedJson } from './report/packed-json.ts'
import { pageFile } from './report/page-file.ts'
import { PartList } from './report/part-list.ts'
import { addParts, type Include } from './report/parts.ts'
import { scopeOf } from './report/scope.ts'
import { addTables, type TabledRun } from './report/tables.ts'
import type { Target } from './target.ts'
import { Viewer } from './viewer.ts'

export type { Include } from './report/parts.ts'

export const DEFAULT_MAX_BYTES = 20_000_000

export interface ReportOptions {
  /** The largest size of the file. Default: 20 MB. */
  readonly maxBytes?: number
  /** Of which tasks it contains the steps. Default: all, as far as they fit. */
  readonly include?: Include
  readonly signal?: AbortSignal
  /** Called often. */
  readonly progress?: (progress: ReportProgress) => void
}

/** The progress of a report: how many tasks were read for this part of it, and its size so far. */
export interface ReportProgress {
  readonly doing: string
  readonly done: number
  readonly total: number
  readonly bytes: number
}

export interface MadeReport {
  /** The whole file. */
  readonly html: string
  readonly bytes: number
  /** What was left out, in words. The report itself lists it too. */
  readonly leftOut: readonly string[]
  /** Whether a larger file would contain more. */
  readonly isFull: boolean
  /** A task with texts that were cut, and the file of its run. */
  readonly cut?: { readonly run: string; readonly file: string; readonly task: string }
}

/** Reserved for the list of what was left out, which is written last. */
const WORDS_BYTES = 2048

/**
 * Makes a report: one file with a run, a training or all of them, which opens without a server. If not everything fits,
 * it leaves out first the steps of successful tasks, then logs, then the steps of failed tasks, and lists what it left
 * out.
 *
 * @example
 * const { html, leftOut } = await makeReport(targetOf('nightly-7', undefined), { maxBytes: 5_000_000 })
 */
export async function makeReport({ place, route }: Target, options: ReportOptions = {}): Promise<MadeReport> {
  const { maxBytes = DEFAULT_MAX_BYTES, include = 'all', signal = new AbortController().signal } = options
  const page = await pageFile()
  using viewer = new Viewer(place)
  const { list, figures, trainings, ...scope } = await scopeOf(viewer, route, signal)
  const start: Start = { manyworlds: ownPackage.version, place: place.path, route }
  // Base64 has four characters for three bytes.
  const most = 3 * Math.floor((maxBytes - page.bytes) / 4) - WORDS_BYTES
  const json = new PackedJson()
  const known = JSON.stringify({ start, madeAt: Date.now(), list, figures, trainings, comparisons: [] })
  json.add(`${known.slice(0, -1)},"runs":{`)
  const progress = (now: Omit<ReportProgress, 'bytes'>) =>
    options.progress?.({ ...now, bytes: page.bytes + Math.ceil((json.bytes * 4) / 3) })
  const tables = await addTables(json, viewer, scope.runs, {
    ...{ most, signal },
    progress: (now) => progress({ doing: 'table', ...now }),
  })
  if (json.bytes > most || (tables.runs.length === 0 && scope.runs.length > 0))
    throw tooSmall(maxBytes, page.bytes + ((tables.needed + WORDS_BYTES) * 4) / 3)
  json.add('},"parts":[')
  const parts = await addParts(new PartList(json, most), viewer, tables.runs, { include, signal, progress })
  const leftOut = [
    ...scope.leftOut,
    ...tables.leftOut,
    ...notWanted(tables.runs, include),
    ...parts.leftOut,
    ...parts.cuts.texts(),
  ]
  json.add(`],"leftOut":${JSON.stringify(leftOut)}}`)
  const html = page.with(json.end().toString('base64'))
  const { first } = parts.cuts
  return {
    ...{ html, bytes: Buffer.byteLength(html), leftOut },
    isFull: tables.leftOut.length + parts.leftOut.length > 0,
    ...(first && { cut: { ...first, file: place.run(first.run).path } }),
  }
}

const tooSmall = (maxBytes: number, needed: number) =>
  new ManyworldsError(
    'CONFIG_INVALID',
    `a report of at most ${bytesText(maxBytes)} cannot contain even the list of tasks; give a larger size, such as --max-size ${Math.ceil(needed / 1e6) + 1}`,
  )

/** What was left out because of `include`, in words. */
function notWanted(runs: readonly TabledRun[], include: Include): string[] {
  if (include === 'none') return ['the steps of all tasks (--include none)']
  const has = runs.some(({ tasks }) => tasks.some(({ hasFailed }) => !hasFailed))
  return include === 'failed' && has ? ['the steps of successful tasks (--include failed)'] : []
}
