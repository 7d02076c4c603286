import { expect, test } from 'vitest'
import { sparkRows, sparkTasks } from '../../dist/engines/spark/index.js'
import { echo } from '../agents/spark-data.ts'
import type { DataSpark, Row } from './data-source.ts'

type Args = Readonly<Record<string, string | number>>

/** Everything that Spark calls a statement and that is not a query, in whatever clothes it comes. */
const REFUSED: readonly (string | [string, Args])[] = [
  'INSERT INTO kept VALUES (2)',
  '-- SELECT\nDROP TABLE kept',
  '/* a /* b */ SELECT 1 */ INSERT INTO kept VALUES (2)',
  '/* /* */ SELECT */ DROP TABLE kept',
  '/*/**/*/DROP TABLE kept',
  '/*+ SELECT */ DROP TABLE kept',
  '-- SELECT 1 \\\nFROM kept\nINSERT INTO kept VALUES (2)',
  '-- SELECT\rINSERT INTO kept VALUES (2)',
  'WITH a AS (SELECT 2 AS id) INSERT INTO kept SELECT * FROM a',
  'WITH a AS (SELECT 2 AS id)\n/* ( */ INSERT OVERWRITE kept\nSELECT * FROM a',
  'FROM range(2) INSERT INTO kept SELECT id',
  'FROM range(2) INSERT INTO kept SELECT id INSERT OVERWRITE kept SELECT id + 1',
  'SELECT 1; DROP TABLE kept',
  'SELECT 1) ; DROP TABLE kept --',
  'SELECT * FROM (INSERT INTO kept VALUES (2))',
  'BEGIN INSERT INTO kept VALUES (2); END',
  'SHOW: BEGIN INSERT INTO kept VALUES (2); END',
  "EXECUTE IMMEDIATE 'INSERT INTO kept VALUES (2)'",
  "EXPLAIN EXTENDED EXECUTE IMMEDIATE 'INSERT INTO kept VALUES (2)'",
  'EXPLAIN SELECT 1',
  'EXPLAIN INSERT INTO kept VALUES (2)',
  ['INSERT INTO kept VALUES (:n)', { n: 2 }],
  ['/* :n /* */ */ INSERT INTO IDENTIFIER(:t) VALUES (:n)', { n: 2, t: 'kept' }],
  'CREATE TABLE made AS SELECT 1',
  'TRUNCATE TABLE kept',
  'ALTER TABLE kept ADD COLUMN more INT',
  'CACHE TABLE kept',
  'SET spark.sql.ansi.enabled = false',
  'RESET',
  ';',
]

/** Each with the values of its first column. */
const QUERIES: readonly (readonly [string, unknown[], Args?])[] = [
  ['SELECT id FROM kept; -- INSERT INTO kept VALUES (2)', [1]],
  ['/* INSERT /* DROP */ TABLE */ SELECT id FROM kept ORDER BY id;;', [1]],
  ['-- DROP \\\nTABLE kept\nSELECT id FROM kept', [1]],
  ['WITH a AS (SELECT 2 AS id) SELECT * FROM a', [2]],
  ['(SELECT 3 AS id) UNION ALL (SELECT 4) ORDER BY id', [3, 4]],
  ['FROM kept SELECT id + 1', [2]],
  ['FROM kept', [1]],
  ['VALUES (1, 2), (3, 4)', [1, 3]],
  ['TABLE kept', [1]],
  ['SELECT id, :word FROM IDENTIFIER(:t) LIMIT :n', [1], { word: 'DROP TABLE kept', t: 'kept', n: 5 }],
  ["SELECT 'it''s /* not */ a -- comment; DROP TABLE kept'", ["it's /* not */ a -- comment; DROP TABLE kept"]],
  ["SHOW TABLES LIKE 'kept'", ['default']],
  ['DESCRIBE kept', ['id']],
  ['  desc kept', ['id']],
]

/** Nothing is executed but queries. */
export function testStatements({ on, query, readTable }: DataSpark): void {
  async function read(sql: string, args?: Args): Promise<Row[]> {
    const rows: Row[] = []
    for await (const row of sparkRows<Row>({ sql, ...(args === undefined ? {} : { args }), ...on })) rows.push(row)
    return rows
  }

  test('statements that change something are refused, and not executed', { timeout: 240_000 }, async () => {
    await query('CREATE TABLE kept AS SELECT 1 AS id')
    const refusals = REFUSED.map(async (one) => {
      const [sql, args] = typeof one === 'string' ? [one] : one
      return [sql, await read(sql, args).catch((reason: unknown) => reason)]
    })
    for (const [sql, error] of await Promise.all(refusals))
      expect([sql, error]).toEqual([sql, expect.objectContaining({ code: expect.stringMatching(/^[A-Z_]+$/) })])
    expect(await readTable('kept')).toEqual([{ id: 1 }])
    const tables = await query('SHOW TABLES')
    expect(tables.filter(({ tableName }) => tableName === 'made')).toEqual([])
    await expect(read('DROP TABLE kept')).rejects.toMatchObject({
      code: 'CONFIG_INVALID',
      message: expect.stringMatching(/`sql` must be one query.*Syntax error at or near 'TABLE'.*\(line 1, pos 5\)/s),
    })
    const tasks = sparkTasks({ sql: '/* /* */ */ DROP TABLE kept', id: 'id', agent: echo, ...on })
    await expect(tasks[Symbol.asyncIterator]().next()).rejects.toMatchObject({ code: 'CONFIG_INVALID' })
    expect(await readTable('kept')).toEqual([{ id: 1 }])
  })

  test('a table called query does not make RESET one', async () => {
    await query('CREATE TABLE query AS SELECT 1 AS reset')
    await expect(read('RESET')).rejects.toMatchObject({ code: 'CONFIG_INVALID' })
    await query('DROP TABLE query')
  })

  test('queries of every form are read', { timeout: 240_000 }, async () => {
    await query('CREATE TABLE IF NOT EXISTS kept AS SELECT 1 AS id')
    const reads = QUERIES.map(async ([sql, first, args]) => [sql, first, await read(sql, args)] as const)
    for (const [sql, first, rows] of await Promise.all(reads))
      expect([sql, rows.map((row) => Object.values(row)[0])]).toEqual([sql, first])
    // Also where other queries are made of it.
    const sql = '/* /* */ */ FROM range(5) SELECT id, id * 2 AS n; -- the end'
    const ids: string[] = []
    for await (const { id } of sparkTasks({ sql, id: 'id', input: 'n', slices: 2, agent: echo, ...on })) ids.push(id!)
    expect(ids.sort()).toEqual(['0', '1', '2', '3', '4'])
  })

  test('an error of a query has its lines, and nothing that was not typed', async () => {
    const error: Error = await read('SELECT\n  nope\nFROM range(1)').then(
      () => new Error('not refused'),
      (reason) => reason,
    )
    expect(error).toMatchObject({ code: 'SPARK_FAILED', errorClass: expect.stringContaining('UNRESOLVED_COLUMN') })
    expect(error.message).toContain('line 2 pos 2')
    expect(error.message).not.toContain('DESCRIBE')
  })
}
