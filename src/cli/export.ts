import { existsSync } from 'node:fs'
import { tableOf } from '../export/columns.ts'
import { exportToFolder } from '../export/experience/atif-folder.ts'
import { experienceTable } from '../export/experience/experience-table.ts'
import { LeftOut } from '../export/experience/left-out.ts'
import { selectorOf } from '../export/experience/selection.ts'
import { exportText, exportToFile } from '../export/export-table.ts'
import { EXPERIENCE_FORMATS, type ExperienceFormat, FORMATS, type Format } from '../export/formats.ts'
import { streamOutput } from '../export/text-output.ts'
import { RunFile } from '../store/run-file.ts'
import { count } from '../text/quantities.ts'
import { say } from '../text/say.ts'
import { visible } from '../text/visible.ts'
import type { ExportArgs } from './specs/export.ts'
import { stopSignal } from './stop-signal.ts'
import { UsageError } from './usage-error.ts'

/** Writes what a run has: as a table, or as what other systems train from. */
export async function run(args: ExportArgs): Promise<number> {
  const { out, force } = args
  const format = formatOf(args)
  const as = isExperience(format) ? fileFormat(format, out) : format
  checkOptions(args, format)
  if (out !== undefined && as !== 'folder' && existsSync(out) && !force)
    throw new UsageError(`${out} is there already; --force replaces it`)
  using file = RunFile.open(args.run, args.dir === undefined ? {} : { store: args.dir })
  const leftOut = new LeftOut()
  const table = isExperience(format)
    ? experienceTable(file, format, selectorOf(file, args), leftOut)
    : tableOf(file, args.what, args.subtasks)
  if (out === undefined) {
    if (as === 'parquet' || as === 'folder') throw new UsageError('a Parquet file is not text: give --out FILE')
    await exportText(table, as, streamOutput(process.stdout))
    report(undefined, leftOut)
    return 0
  }
  const stop = stopSignal()
  try {
    const options = { force, signal: stop.signal }
    const rows =
      as === 'folder' ? await exportToFolder(table, out, options) : await exportToFile(table, as, out, options)
    const [one, many] = isExperience(format) ? NOUNS[format] : [args.what.slice(0, -1), args.what]
    const noun = rows === 1 ? one : many
    report(`${count(rows)} ${noun} of run ${file.runId}: ${out}`, leftOut)
    return 0
  } catch (error) {
    const code = stop.code()
    if (code === undefined) throw error
    say(`interrupted; ${out} was not written`)
    return code
  }
}

const NOUNS: Readonly<Record<ExperienceFormat, readonly [one: string, many: string]>> = {
  atif: ['trajectory', 'trajectories'],
  verl: ['row of tokens', 'rows of tokens'],
  trl: ['row of tokens', 'rows of tokens'],
  'prime-rl': ['row of tokens', 'rows of tokens'],
  sft: ['conversation', 'conversations'],
}

/** Nothing is left out in silence, also where the export goes to another program. */
function report(done: string | undefined, leftOut: LeftOut): void {
  const { text } = leftOut
  for (const line of [done, text]) if (line !== undefined) process.stderr.write(visible(`${line}\n`))
}

const isExperience = (format: Format | ExperienceFormat): format is ExperienceFormat =>
  (EXPERIENCE_FORMATS as readonly string[]).includes(format)

/** Rows of tokens are for Parquet or JSONL, as the file ends; the others are JSON. */
function fileFormat(format: ExperienceFormat, out: string | undefined): 'jsonl' | 'parquet' | 'folder' {
  if (out === undefined || out.endsWith('.jsonl')) return 'jsonl'
  if (format === 'atif' && !/\.\w+$/.test(out)) return 'folder'
  if (format !== 'atif' && format !== 'sft' && out.endsWith('.parquet')) return 'parquet'
  const endings = format === 'sft' ? '.jsonl' : format === 'atif' ? '.jsonl, or be a folder' : '.parquet or .jsonl'
  throw new UsageError(`the file of --format ${format} must end with ${endings}; it is ${out}`)
}

/** Options that would change nothing are refused. */
function checkOptions({ what, subtasks, split, onlySuccess, minReward }: ExportArgs, format: string): void {
  const forTraining = (EXPERIENCE_FORMATS as readonly string[]).includes(format)
  const given = forTraining
    ? { '--what': what !== 'responses', '--subtasks': subtasks }
    : { '--split': split !== undefined, '--only-success': onlySuccess, '--min-reward': minReward !== undefined }
  for (const [name, isGiven] of Object.entries(given))
    if (isGiven)
      throw new UsageError(
        `${name} is for ${forTraining ? FORMATS.join(', ') : EXPERIENCE_FORMATS.join(', ')}, and the format is ${format}`,
      )
}

function formatOf({ format, out }: ExportArgs): Format | ExperienceFormat {
  const ending = FORMATS.find((name) => out?.endsWith(`.${name}`))
  const chosen = format ?? ending
  if (chosen === undefined)
    throw new UsageError(
      `give --format: ${[...FORMATS, ...EXPERIENCE_FORMATS].join(', ')}${out === undefined ? '' : `; ${out} does not end with one of them`}`,
    )
  return chosen
}
