import { basename, dirname, resolve } from 'node:path'
import type { AnyAgent } from '../agent.ts'
import type { DataSet } from '../data/data-set.ts'
import { fromJsonl } from '../data/jsonl.ts'
import { type DataSource, isAddress, nameOf } from '../data/open-bytes.ts'
import type { RowSchema } from '../data/row-schema.ts'

/** A question of the GAIA benchmark, as a task. */
export interface GaiaTask {
  readonly id: string
  readonly input: {
    readonly instruction: string
    /** The path of the file that the question refers to. */
    readonly file?: string
  }
  /** Left out in the test split, whose answers are secret. */
  readonly groundTruth?: string
  readonly metadata: {
    readonly level: 1 | 2 | 3
    readonly fileName?: string
    /** The effort of the annotator. */
    readonly steps?: number
    readonly tools?: number
  }
}

export interface GaiaOptions<A extends AnyAgent | undefined = undefined> {
  /** Assigned to every task, so that the tasks can be passed to `Runners.streamTask`. */
  readonly agent?: A
  /** Only questions of this level. */
  readonly level?: 1 | 2 | 3
  /** The folder of the files that questions refer to. Default: the folder of the JSONL file. */
  readonly files?: string
}

export type GaiaTaskOf<A> = A extends AnyAgent ? GaiaTask & { readonly agent: A } : GaiaTask

/**
 * Reads the tasks of GAIA from its `metadata.jsonl`. Download that yourself: its license does not allow redistribution. Grade
 * with `gaiaMatch()`.
 *
 * The annotator's steps and list of tools are left out: they reveal the solution, and agents see `metadata`.
 *
 * @example
 * Runners.streamTask(gaiaTasks('GAIA/2023/validation/metadata.jsonl', { agent: solver, level: 1 }), { grade: gaiaMatch() })
 */
export function gaiaTasks<A extends AnyAgent | undefined = undefined>(
  source: DataSource,
  options: GaiaOptions<A> = {},
): DataSet<GaiaTaskOf<A>> {
  const { agent, level, files = folderOf(source) } = options
  const toTask = (row: GaiaRow): GaiaTaskOf<A> | undefined => {
    if (level !== undefined && row.level !== level) return undefined
    const task = taskOf(row, files)
    return (agent === undefined ? task : { ...task, agent }) as GaiaTaskOf<A>
  }
  return fromJsonl(source, toTask, { schema: GAIA_ROW })
}

/** The folder of the JSONL file, where the data set has its files. */
const folderOf = (source: DataSource) => (isAddress(source) ? '.' : dirname(nameOf(source, undefined)))

/** A parsed line of the file. */
interface GaiaRow {
  readonly id: string
  readonly question: string
  readonly level: 1 | 2 | 3
  readonly answer: string | undefined
  readonly fileName: string
  readonly steps: number | undefined
  readonly tools: number | undefined
}

function taskOf({ id, question, level, answer, fileName, steps, tools }: GaiaRow, files: string): GaiaTask {
  return {
    id,
    input: { instruction: question, ...(fileName && { file: resolve(files, fileName) }) },
    ...(answer !== undefined && { groundTruth: answer }),
    metadata: {
      level,
      ...(fileName && { fileName }),
      ...(steps !== undefined && { steps }),
      ...(tools !== undefined && { tools }),
    },
  }
}

const NO_ANSWER = '?'

const GAIA_ROW: RowSchema<GaiaRow> = {
  '~standard': {
    version: 1,
    vendor: 'manyworlds',
    validate: (row) => {
      const read = readRow(Object(row))
      return 'wrong' in read ? { issues: [{ message: read.wrong, path: [read.key] }] } : { value: read }
    },
  },
}

function readRow(row: Readonly<Record<string, unknown>>): GaiaRow | { readonly key: string; readonly wrong: string } {
  const { task_id: id, Question: question, file_name: fileName = '', 'Final answer': answer = NO_ANSWER } = row
  if (!isText(id)) return { key: 'task_id', wrong: 'must be text; is this the metadata.jsonl of GAIA?' }
  if (!isText(question)) return { key: 'Question', wrong: 'must be text' }
  const level = Number(row.Level)
  if (level !== 1 && level !== 2 && level !== 3) return { key: 'Level', wrong: 'must be 1, 2 or 3' }
  if (typeof answer !== 'string' && typeof answer !== 'number')
    return { key: 'Final answer', wrong: 'must be text or a number' }
  // The name comes from the data and is joined to a path of the user.
  if (typeof fileName !== 'string' || basename(fileName) !== fileName || fileName === '..')
    return { key: 'file_name', wrong: 'must be a plain file name' }
  const annotator = Object(row['Annotator Metadata']) as Readonly<Record<string, unknown>>
  const [steps, tools] = [countIn(annotator['Number of steps']), countIn(annotator['Number of tools'])]
  return { id, question, level, answer: answer === NO_ANSWER ? undefined : String(answer), fileName, steps, tools }
}

const isText = (value: unknown): value is string => typeof value === 'string' && value.trim() !== ''

/** Reads a count that was written by hand: "5", "5 steps", "about 5". */
function countIn(text: unknown): number | undefined {
  const digits = /\d{1,6}/.exec(String(text ?? '').slice(0, 100))
  return digits ? Number(digits[0]) : undefined
}
