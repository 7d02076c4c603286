import { isAgent } from '../../../agent.ts'
import { nearest } from '../../../did-you-mean.ts'
import { ManyworldsError } from '../../../errors.ts'
import { requirePeers, SPARK_PEERS } from '../../../optional-peers.ts'
import type { SparkRowsOptions } from './rows.ts'
import type { SparkSinkOptions } from './sink.ts'
import type { SparkTasksOptions } from './tasks.ts'
import { kindInWords } from './words.ts'

/** Mistakes in options are reported where they are made: in the call of `sparkRows`, `sparkTasks` or `sparkSink`. */

const PLACE = ['spark', 'inLocal', 'workerNum', 'progress']
const ROWS = ['sql', 'args', 'table', 'parquet', ...PLACE]
const TASKS = [...ROWS, 'id', 'input', 'agent', 'task', 'slices']
const SINK = ['table', 'parquet', 'mode', 'row', 'schema', 'partitionBy', 'batchRows', ...PLACE]
const ARGUMENTS = ['string', 'number', 'bigint', 'boolean']
const MODES = ['error', 'overwrite', 'append']

type Given = Readonly<Record<string, unknown>>

export function checkRowsOptions(options: SparkRowsOptions): void {
  requirePeers('sparkRows', SPARK_PEERS)
  checkSource('sparkRows', checkKeys('sparkRows', options, ROWS))
}

export function checkTasksOptions(options: SparkTasksOptions): void {
  requirePeers('sparkTasks', SPARK_PEERS)
  const given = checkKeys('sparkTasks', options, TASKS)
  const { id, input, agent, task, slices } = given
  const wrong = wrongIn('sparkTasks')
  checkSource('sparkTasks', given)
  if (!isName(id) && typeof id !== 'function')
    throw wrong('`id` must be the name of a column, or a function of the row: it tells tasks apart')
  if (input !== undefined && !isName(input) && !isNames(input) && typeof input !== 'function')
    throw wrong('`input` must be the name of a column, a list of names, or a function of the row')
  if (!isAgent(agent)) throw wrong('`agent` must be what defineAgent() returned')
  if (task !== undefined && typeof task !== 'function') throw wrong('`task` must be a function of the row')
  if (slices === undefined) return
  if (!isCount(slices)) throw wrong('`slices` must be a whole number of at least 1')
  if (slices > 1 && !isName(id)) throw wrong('`slices` divides rows by the hash of the id, so `id` must be a column')
}

export function checkSinkOptions(options: SparkSinkOptions): void {
  requirePeers('sparkSink', SPARK_PEERS)
  const given = checkKeys('sparkSink', options, SINK)
  const { mode, row, schema, partitionBy, batchRows } = given
  const wrong = wrongIn('sparkSink')
  checkOne('sparkSink', given, ['table', 'parquet'])
  if (Array.isArray(given.parquet)) throw wrong('`parquet` must be one path')
  if (mode !== undefined && !MODES.includes(mode as string)) throw wrong(`\`mode\` must be one of ${listOf(MODES)}`)
  if (row !== undefined && typeof row !== 'function') throw wrong('`row` must be a function of the response')
  if (schema !== undefined && !isName(schema))
    throw wrong("`schema` must be columns with their types, such as 'id string, score double'")
  if (partitionBy !== undefined && !isName(partitionBy) && !isNames(partitionBy))
    throw wrong('`partitionBy` must be the name of a column, or a list of names')
  if (batchRows !== undefined && !isCount(batchRows)) throw wrong('`batchRows` must be a whole number of at least 1')
}

function checkKeys(who: string, options: unknown, allowed: readonly string[]): Given {
  if (typeof options !== 'object' || options === null) throw wrongIn(who)('the options must be an object')
  for (const key of Object.keys(options)) {
    if (allowed.includes(key)) continue
    const near = nearest(key, allowed)
    const meant = near === undefined ? '' : `, did you mean '${near}'?`
    throw wrongIn(who)(`unknown key '${key}'${meant}; allowed: ${allowed.join(', ')}`)
  }
  const { progress } = options as Given
  if (progress !== undefined && typeof progress !== 'boolean') throw wrongIn(who)('`progress` must be true or false')
  return options as Given
}

function checkSource(who: string, given: Given): void {
  checkOne(who, given, ['sql', 'table', 'parquet'])
  const wrong = wrongIn(who)
  if (given.args !== undefined && given.sql === undefined) throw wrong('`args` are for the :names in `sql`')
  if (given.args !== undefined) checkArgs(wrong, given.args)
}

/** Other values have no SQL literal, and would silently become some number. */
function checkArgs(wrong: (what: string) => Error, args: unknown): void {
  if (typeof args !== 'object' || args === null || Array.isArray(args))
    throw wrong(`\`args\` must be an object of values for the :names in \`sql\`; this is ${kindInWords(args)}`)
  for (const [name, value] of Object.entries(args)) {
    if (value === null || (ARGUMENTS.includes(typeof value) && !Number.isNaN(value))) continue
    throw wrong(`\`args.${name}\` is ${kindInWords(value)}; it must be text, a number, a bigint, true, false or null`)
  }
}

function checkOne(who: string, given: Given, keys: readonly string[]): void {
  const wrong = wrongIn(who)
  const found = keys.filter((key) => given[key] !== undefined)
  if (found.length !== 1)
    throw wrong(
      `give one of ${listOf(keys)}, ${found.length === 0 ? 'none was given' : `not ${listOf(found)} together`}`,
    )
  const [key] = found as [string]
  const value = given[key]
  const severalPaths = key === 'parquet' && isNames(value)
  if (!isName(value) && !severalPaths) throw wrong(`\`${key}\` must be non-empty text`)
}

const wrongIn = (who: string) => (what: string) => new ManyworldsError('CONFIG_INVALID', `${who}: ${what}`)
const listOf = (words: readonly string[]) => words.map((word) => `\`${word}\``).join(', ')
const isName = (value: unknown): value is string => typeof value === 'string' && value !== ''
const isNames = (value: unknown) => Array.isArray(value) && value.length > 0 && value.every(isName)
const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 1
