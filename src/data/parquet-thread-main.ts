import { parentPort, workerData } from 'node:worker_threads'
import { DataError, placeText } from './data-error.ts'
import { parquetGroups } from './parquet-rows.ts'
import type { ParquetRequest, ParquetSaid } from './parquet-thread.ts'

/** Rows per message: few enough that sending them does not take much memory. */
const ROWS = 1000

/** The thread that reads a Parquet file (`parquet-thread.ts`). */
const port = parentPort!
const { path, file, columns } = workerData as ParquetRequest
const say = (said: ParquetSaid) => port.postMessage(said)
const asked = () => new Promise<void>((resolve) => port.once('message', () => resolve()))

try {
  await asked()
  for await (const rows of parquetGroups(path, file, columns))
    for (let at = 0; at < rows.length; at += ROWS) {
      say({ rows: rows.slice(at, at + ROWS) })
      await asked()
    }
  say({ end: true })
} catch (error) {
  const { message, code = 'DATA_INVALID', line } = error as Partial<DataError> & Error
  const isOurs = error instanceof DataError
  const what = isOurs ? message.slice(placeText(error).length + 2) : `cannot be read: ${message}`
  const cause = isOurs && error.cause instanceof Error ? error.cause : error
  say({ failed: { code: isOurs ? (code as 'DATA_INVALID') : 'DATA_INVALID', line, what, cause } })
}
