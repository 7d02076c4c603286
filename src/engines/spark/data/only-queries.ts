import { ManyworldsError } from '../../../errors.ts'
import { type SqlArgument, sql } from '../connect/plans.ts'
import type { ConnectSession } from '../connect/session.ts'
import { SparkError } from '../connect/spark-error.ts'

/**
 * Spark's grammar has only a query after these words, so its own parser tells queries from statements that change something,
 * whatever comments and clauses they hide behind, and executes neither. EXPLAIN would not do: it executes EXECUTE IMMEDIATE.
 */
const PREFIX = 'DESCRIBE QUERY\n'
/** Statements that begin with these words only read. A comment may not come first: finding its end is the parser's business. */
const ONLY_READS = /^\s*(SHOW|DESCRIBE|DESC)\s+[a-z`'"]/i

/** Throws unless the text is one query, or one SHOW or DESCRIBE. Checking does not execute it. */
export async function refuseAllButQueries(
  session: ConnectSession,
  query: string,
  args: Readonly<Record<string, SqlArgument>>,
): Promise<void> {
  if (ONLY_READS.test(query)) return
  try {
    // With some text, such as `RESET`, the prefix describes a table called `query`: then the result has other columns.
    for await (const column of session.rows(sql(PREFIX + query, {}, args)))
      if (!('col_name' in column)) throw notAQuery('')
  } catch (error) {
    if (!(error instanceof SparkError)) throw error
    const message = withoutPrefix(error.message)
    if (error.errorClass === 'PARSE_SYNTAX_ERROR') throw notAQuery(`. Spark says: ${message}`, error)
    const { errorClass, sqlState, grpcCode, causes } = error
    throw new SparkError(message, { cause: error, errorClass, sqlState, grpcCode, causes })
  }
}

const notAQuery = (words: string, cause?: unknown) =>
  new ManyworldsError(
    'CONFIG_INVALID',
    `\`sql\` must be one query, or begin with SHOW or DESCRIBE; statements that change something are not executed${words}`,
    { cause },
  )

/** Spark's messages quote the text and count its lines, our prefix included. */
const withoutPrefix = (message: string): string =>
  message
    .replace(`\n${PREFIX}`, '\n')
    .replace(/\bline (\d{1,9})(,? pos)/g, (_, line, rest) => `line ${Number(line) - 1}${rest}`)
