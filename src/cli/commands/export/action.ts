import { existsSync } from 'node:fs'
import { type Table, tableOf } from '../../../export/columns.ts'
import { exportToFolder } from '../../../export/experience/atif-folder.ts'
import { experienceTable } from '../../../export/experience/experience-table.ts'
import { LeftOut, REASONS } from '../../../export/experience/left-out.ts'
import { type Selection, selectorOf } from '../../../export/experience/selection.ts'
import { exportText, exportToFile } from '../../../export/export-table.ts'
import { EXPERIENCE_FORMATS, type ExperienceFormat, FORMATS, type Format } from '../../../export/formats.ts'
import { joinedTable } from '../../../export/joined-table.ts'
import { streamOutput } from '../../../export/text-output.ts'
import { runFolder } from '../../../store/find-run.ts'
import { RunFile } from '../../../store/run-file.ts'
import { type FoundTraining, findRunOrTraining } from '../../../store/trainings/find-training.ts'
import { StoredTraining } from '../../../store/trainings/stored-training.ts'
import { escapeControls } from '../../../text/escape-controls.ts'
import { count } from '../../../text/quantities.ts'
import { say } from '../../../text/say.ts'
import { stopSignal } from '../../frame/stop-signal.ts'
import { UsageError } from '../../frame/usage-error.ts'
import { exportPolicy } from './export-policy.ts'
import type { ExportArgs } from './spec.ts'

/** Writes a run or a training as a table or as training data for other systems, or writes the trained policy. */
export async function run(args: ExportArgs): Promise<number> {
  const kind = args.policy === undefined ? kindOf(args) : undefined
  const found = findRunOrTraining(args.run, runFolder(args.dir))
  if (kind === undefined) {
    if (!found.training) throw new UsageError(`--policy is for trainings, but ${found.run.runId} is a run`)
    return await exportPolicy(found.training, args.policy!, args)
  }
  if (found.training) return await exportFrom(ofTraining(found.training, args), kind, args)
  using file = RunFile.at(found.run)
  return await exportFrom({ name: `run ${file.runId}`, table: (make) => make(file, args) }, kind, args)
}

/** The format, and the kind of file. */
interface Kind {
  readonly format: Format | ExperienceFormat
  readonly as: Format | 'folder'
}

function kindOf(args: ExportArgs): Kind {
  const { out, force } = args
  const format = formatOf(args)
  const as = isExperience(format) ? fileFormat(format, out) : format
  if (out !== undefined && as !== 'folder' && existsSync(out) && !force)
    throw new UsageError(`cannot write ${out}: the file already exists; use --force to replace it`)
  return { format, as }
}

/** Where rows come from. */
interface Source {
  readonly name: string
  /** The split selects runs, not rows. */
  readonly isTraining?: boolean
  table(make: (run: RunFile, selection: Selection) => Table<never>): Table<never>
}

/** The runs of a training that the split selects: those that collected its training episodes, or those that evaluated. */
function ofTraining(found: FoundTraining, { split = 'train', ...args }: ExportArgs): Source {
  using training = StoredTraining.at(found)
  const runs = training.runsOf(split)
  const { id, path } = training
  if (runs.length === 0)
    throw new UsageError(`training ${id} has no runs${split === 'all' ? '' : ` for --split ${split}`}`)
  const selection: Selection = { ...args, split: 'all' }
  const name = `${count(runs.length)} ${runs.length === 1 ? 'run' : 'runs'} of training ${id}`
  return {
    name,
    isTraining: true,
    table: (make) => joinedTable({ path, name: id, runs }, (run) => make(run, selection)),
  }
}

async function exportFrom(source: Source, { format, as }: Kind, args: ExportArgs): Promise<number> {
  const { out, force } = args
  checkOptions(args, format, source.isTraining === true)
  const leftOut = new LeftOut()
  const table = source.table((run, selection) => {
    if (isExperience(format)) return experienceTable(run, format, selectorOf(run, selection), leftOut, args)
    return args.what === 'steps'
      ? withoutRemoved(run, tableOf(run, args.what, args.subtasks), leftOut)
      : tableOf(run, args.what, args.subtasks)
  })
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
    report(`${count(rows)} ${noun} of ${source.name}: ${out}`, leftOut)
    return 0
  } catch (error) {
    const code = stop.code()
    if (code === undefined) throw error
    say(`interrupted; ${out} was not written`)
    return code
  }
}

/** Counts steps that were removed among what is left out. Rows of responses have a column for them. */
function withoutRemoved(run: RunFile, table: Table<never>, leftOut: LeftOut): Table<never> {
  const rows = () => {
    for (let left = run.thinned(); left > 0; left--) leftOut.add(REASONS.removedSteps)
    return table.rows()
  }
  return { ...table, rows }
}

const NOUNS: Readonly<Record<ExperienceFormat, readonly [one: string, many: string]>> = {
  atif: ['trajectory', 'trajectories'],
  verl: ['row of tokens', 'rows of tokens'],
  trl: ['row of tokens', 'rows of tokens'],
  'prime-rl': ['row of tokens', 'rows of tokens'],
  sft: ['conversation', 'conversations'],
  preference: ['pair', 'pairs'],
}

/** Reports what was left out, also if the export is written to stdout. */
function report(done: string | undefined, leftOut: LeftOut): void {
  const { text } = leftOut
  for (const line of [done, text]) if (line !== undefined) process.stderr.write(escapeControls(`${line}\n`))
}

const isExperience = (format: Format | ExperienceFormat): format is ExperienceFormat =>
  (EXPERIENCE_FORMATS as readonly string[]).includes(format)

/** Rows of tokens are written as Parquet or JSONL, depending on the extension of the file; the other formats are JSON. */
function fileFormat(format: ExperienceFormat, out: string | undefined): 'jsonl' | 'parquet' | 'folder' {
  if (out === undefined || out.endsWith('.jsonl')) return 'jsonl'
  if (format === 'atif' && !/\.\w+$/.test(out)) return 'folder'
  const isText = format === 'sft' || format === 'preference'
  if (format !== 'atif' && !isText && out.endsWith('.parquet')) return 'parquet'
  const endings = isText ? '.jsonl' : format === 'atif' ? '.jsonl, or be a folder' : '.parquet or .jsonl'
  throw new UsageError(`the file of --format ${format} must end with ${endings}; it is ${out}`)
}

/** Refuses options that would have no effect. */
function checkOptions(args: ExportArgs, format: string, isTraining: boolean): void {
  const { what, subtasks, split, onlySuccess, minReward, best, minMargin } = args
  if (best && format === 'preference')
    throw new UsageError(
      '--best does not apply to preference, which pairs the best rollout of each group with the worst',
    )
  if (minMargin !== undefined && format !== 'preference')
    throw new UsageError(`--min-margin is for preference, but the format is ${format}`)
  const forTraining = (EXPERIENCE_FORMATS as readonly string[]).includes(format)
  const given = forTraining
    ? { '--what': what !== 'responses', '--subtasks': subtasks }
    : {
        '--split': split !== undefined && !isTraining,
        '--only-success': onlySuccess,
        '--min-reward': minReward !== undefined,
        '--best': best,
      }
  for (const [name, isGiven] of Object.entries(given))
    if (isGiven)
      throw new UsageError(
        `${name} is for ${forTraining ? FORMATS.join(', ') : EXPERIENCE_FORMATS.join(', ')}, but the format is ${format}`,
      )
}

function formatOf({ format, out }: ExportArgs): Format | ExperienceFormat {
  const ending = FORMATS.find((name) => out?.endsWith(`.${name}`))
  const chosen = format ?? ending
  if (chosen === undefined)
    throw new UsageError(
      `give --format: ${[...FORMATS, ...EXPERIENCE_FORMATS].join(', ')}${out === undefined ? '' : `; it cannot be derived from the name of ${out}`}`,
    )
  return chosen
}
