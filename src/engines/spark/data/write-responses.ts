import { setTimeout as sleep } from 'node:timers/promises'
import { didYouMean } from '../../../did-you-mean.ts'
import { ManyworldsError } from '../../../errors.ts'
import { count, counted } from '../../../text/quantities.ts'
import { type Columns, GuessedColumns, KnownColumns } from './columns.ts'
import { DataProgress } from './data-progress.ts'
import { Output } from './output.ts'
import { openSpark } from './place.ts'
import { wasReadSince } from './read-guard.ts'
import { RESPONSE_COLUMNS, RESPONSE_SCHEMA } from './response-row.ts'
import { ResponseSource, type Responses } from './response-source.ts'
import { RowBatch } from './row-batch.ts'
import type { SparkSinkOptions, SparkWritten } from './sink.ts'

/** Time for an engine on the same local Spark to start after its first response is requested: it decides Spark's size. */
const ENGINE_MS = 1000

export async function writeResponses(options: SparkSinkOptions, responses: Responses): Promise<SparkWritten> {
  const began = performance.now()
  const source = new ResponseSource(responses)
  if (options.inLocal) await Promise.race([source.ask().catch(() => {}), sleep(ENGINE_MS)])
  try {
    let output: Output | undefined
    const to = options.parquet ?? options.table
    const progress = new DataProgress(options, `writing answers to '${to}'`, () =>
      output === undefined
        ? 'waiting for Spark'
        : `${counted(output.rows, 'row')} written, ${count(output.pending)} under way`,
    )
    const server = await progress.during(openSpark(options))
    try {
      output = new Output(server, options, progress)
      const columns = await progress.during(columnsOf(options, output))
      refuseToReplaceTheSource(options, began)
      await writeAll(source, new RowBatch(options, columns), output, () => refuseToReplaceTheSource(options, began))
      progress.end(counted(output.rows, 'row'))
      return { rows: output.rows, batches: output.batches }
    } finally {
      await server.release(false)
    }
  } catch (error) {
    await source.stop()
    throw error
  }
}

/** While one batch is written, the next is collected; if that is full too, no more responses are requested. */
async function writeAll(source: ResponseSource, rows: RowBatch, output: Output, onFirst: () => void): Promise<void> {
  let writing: Promise<undefined> | undefined
  let misfit: unknown
  try {
    for (let seen = 0; ; ) {
      const item = await (writing === undefined ? source.ask() : Promise.race([source.ask(), writing]))
      if (item === undefined) {
        writing = undefined
        continue
      }
      source.taken()
      if (item.done) break
      if (seen++ === 0) onFirst()
      if (!collected(() => rows.add(item.value))) continue
      await writing
      writing = write()
    }
    await writing
    // Without any response, an empty batch still creates the table.
    if (rows.size > 0 || output.batches === 0) await write()
  } catch (error) {
    // Wait for the current write before reporting.
    await writing?.catch(() => {})
    if (error !== misfit || !ManyworldsError.is(error)) throw error
    throw new ManyworldsError(error.code, `${error.message} (${output.soFar})`, { cause: error.cause })
  }

  function collected<T>(work: () => T): T {
    try {
      return work()
    } catch (error) {
      misfit = error
      throw error
    }
  }

  async function write(): Promise<undefined> {
    await output.write(
      collected(() => rows.take()),
      rows.schema,
    )
  }
}

async function columnsOf({ row, schema }: SparkSinkOptions, output: Output): Promise<Columns> {
  const known = schema ?? (row === undefined ? RESPONSE_SCHEMA : undefined)
  const fields = await output.check(known)
  if (known === undefined) return new GuessedColumns()
  const unknown = row === undefined ? fields!.find(({ name }) => !RESPONSE_COLUMNS.includes(name))?.name : undefined
  if (unknown !== undefined)
    throw new ManyworldsError(
      'CONFIG_INVALID',
      `sparkSink: '${unknown}' is in the schema, and responses have no such column; give \`row\` to make it. Columns of a response: ${RESPONSE_COLUMNS.join(', ')}${didYouMean(unknown, RESPONSE_COLUMNS)}`,
    )
  return new KnownColumns(known, fields!)
}

function refuseToReplaceTheSource(options: SparkSinkOptions, began: number): void {
  if (!wasReadSince(began, options, options)) return
  const what = options.parquet ?? options.table
  throw new ManyworldsError(
    'CONFIG_INVALID',
    `sparkSink: '${what}' is what the tasks are read from; write the responses elsewhere`,
  )
}
