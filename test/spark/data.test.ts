import { existsSync, mkdirSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, describe, expect, test } from 'vitest'
import {
  type SparkSinkOptions,
  type SparkTasksOptions,
  sparkRows,
  sparkSink,
  sparkTasks,
} from '../../dist/engines/spark/index.js'
import { ManyworldsError, Runners, type TaskLike, type TaskResponse } from '../../dist/index.js'
import { answer, echo, grade } from '../agents/spark-data.ts'
import { liveBytes } from '../support/live-memory.ts'
import { type Row, startDataSpark } from './data-source.ts'
import { testStatements } from './data-statements.ts'
import { testValues } from './data-values.ts'

/** Tasks from DataFrames, and answers to tables and Parquet files, on a real Spark, where workers run as well. */

const WORKERS = 2
const spark = await startDataSpark(WORKERS, { 'spark.driver.maxResultSize': '150m' })
const { on } = spark
const engine = { engineName: 'spark', workerNum: WORKERS, ...on } as const
/** For what has nothing to do with where tasks run. */
const here = { workerNum: 1 }

afterAll(async () => {
  await Runners.shutdown()
  await spark.stop()
}, 60_000)

async function all<T>(iterable: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = []
  for await (const one of iterable) found.push(one)
  return found
}

const idsOf = (tasks: readonly TaskLike[]) => tasks.map(({ id }) => id).sort()
const byId = (rows: readonly Row[]) => [...rows].sort((a, b) => (String(a.id) < String(b.id) ? -1 : 1))

async function refusal(work: () => unknown): Promise<ManyworldsError> {
  let error: unknown
  try {
    await work()
  } catch (reason) {
    error = reason
  }
  if (!ManyworldsError.is(error)) throw new Error('it was not refused', { cause: error })
  return error
}

/** A response that nothing ran for. */
const response = (id: string, its: Partial<TaskResponse> = {}): TaskResponse =>
  ({
    ...{ id, agentName: 'answer', success: true, status: 'success', answer: `answer ${id}`, attempts: 1 },
    ...{ timing: { queuedMs: 1, runMs: 2.5 }, usage: {}, worker: { id: 'local-0', host: 'here', pid: 1 } },
    ...{ trajectory: [], logs: [], restored: false, ...its },
  }) as TaskResponse

const QUESTIONS = "SELECT concat('q', id) AS id, concat('what is ', id, '?') AS question, id AS n FROM range(2000)"

test('tasks from Parquet, answers to Parquet, while workers run on the same Spark', { timeout: 180_000 }, async () => {
  const questions = await spark.makeParquet(
    'questions',
    "SELECT concat('q', id) AS id, if(id % 100 = 7, concat('unanswerable ', id), concat('what is ', id, '?')) AS question FROM range(2000)",
  )
  const tasks = sparkTasks({ parquet: questions, id: 'id', input: 'question', agent: answer, ...on })
  const workers = new Set<string>()
  async function* watched() {
    for await (const one of Runners.streamTask(tasks, engine)) {
      workers.add(one.worker!.id)
      yield one
    }
  }
  const path = spark.path('answers')
  const written = await sparkSink({ parquet: path, batchRows: 300, ...on }).write(watched())
  expect(written).toEqual({ rows: 2000, batches: 7 })
  for (const id of workers) expect(id).toMatch(/slot-[01]\b/)
  const rows = await spark.readParquet(path)
  expect(new Set(rows.map(({ id }) => id)).size).toBe(2000)
  const find = (id: string) => rows.find((row) => row.id === id)
  expect(find('q42')).toMatchObject({ agent: 'answer', success: true, status: 'success', answer: 'WHAT IS 42?' })
  expect(find('q42')).toMatchObject({ attempts: 1, error_code: null, run_ms: expect.any(Number) })
  expect(find('q107')).toMatchObject({ success: false, status: 'failed', answer: null, error_code: 'TASK_THREW' })
  expect(find('q107')).toMatchObject({ error_message: 'what a question: unanswerable 107' })
  expect(rows.filter(({ success }) => !success)).toHaveLength(20)
})

describe('statements', () => testStatements(spark))

describe('values', () => testValues(spark))

describe('reading', () => {
  test('a table, a query with arguments, several Parquet files; each iteration reads again', async () => {
    await spark.query(`CREATE TABLE questions AS ${QUESTIONS}`)
    const table = sparkTasks({ table: 'questions', id: 'id', input: 'question', agent: answer, ...on })
    const read = await all(table)
    expect(read).toHaveLength(2000)
    expect(read.find(({ id }) => id === 'q5')).toEqual({ id: 'q5', input: 'what is 5?', agent: answer })
    await spark.query("INSERT INTO questions VALUES ('q2000', 'one more', 2000)")
    expect(await all(table)).toHaveLength(2001)

    const kept = ['$', '{kept}'].join('')
    const sql = `SELECT *, '${kept}' AS text FROM questions WHERE n >= :least AND id <> :not AND :yes ORDER BY n DESC`
    const args = { least: 1995, not: 'q1996', yes: true }
    const query = sparkTasks({ sql, args, id: 'id', input: ['n', 'text'], agent: echo, ...on })
    expect((await all(query)).map(({ id, input }) => ({ id, input }))).toEqual(
      [2000, 1999, 1998, 1997, 1995].map((n) => ({ id: `q${n}`, input: { n, text: kept } })),
    )

    const parts = [
      await spark.makeParquet('part a', "SELECT 1 AS id, 'x' AS t"),
      await spark.makeParquet('part b', "SELECT 2 AS id, 'y' AS t"),
    ]
    const several = await all(sparkTasks({ parquet: parts, id: 'id', input: 't', agent: answer, ...on }))
    expect(idsOf(several)).toEqual(['1', '2'])
  })

  test('ids, inputs and the rest made by functions', async () => {
    const options = {
      ...{ sql: 'SELECT id AS n, named_struct("x", id * 2) AS inner FROM range(3)', agent: grade, ...on },
      id: (row: { n: number }) => `row-${row.n}`,
      input: (row: { n: number; inner: { x: number } }) => ({ text: 'x'.repeat(row.inner.x), least: row.n }),
      task: (row: { n: number }) => ({ groundTruth: row.n * 10, timeoutMs: 5000, metadata: { row: row.n } }),
    }
    expect(await all(sparkTasks(options))).toEqual(
      [0, 1, 2].map((n) => ({
        ...{ id: `row-${n}`, input: { text: 'x'.repeat(n * 2), least: n }, agent: grade },
        ...{ groundTruth: n * 10, timeoutMs: 5000, metadata: { row: n } },
      })),
    )
    const responses = await Runners.runTask(sparkTasks(options), here)
    expect(responses.get('row-2')?.answer).toEqual({ score: 2, tags: ['x', 'x', 'x', 'x'], passed: true })
  })

  test('values of every type reach the agent, and nulls', { timeout: 120_000 }, async () => {
    const sql = `SELECT 'a' AS id, 'ü😀' AS text, true AS yes, 1Y AS tiny, 32000S AS small, 7 AS whole,
      9007199254740991L AS safe, 9007199254740993L AS big, 1.5D AS double, 0.5F AS float, 12.34BD AS decimal,
      12345678901234567890.5BD AS long_decimal, DATE'2024-02-29' AS date, TIMESTAMP'2024-02-29 12:30:00.123Z' AS timestamp,
      TIMESTAMP_NTZ'2024-02-29 12:30:00' AS ntz, X'00FF' AS binary, array(1, null, 3) AS list,
      named_struct('x', 1, 'y', array('z')) AS struct, map('k', 1.5D) AS map, CAST(null AS string) AS nothing
      UNION ALL SELECT 'b', null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null,
      null, null, null`
    const tasks = sparkTasks({ sql, id: 'id', agent: echo, ...on })
    const responses = await Runners.runTask(tasks, engine)
    const input = {
      ...{ id: 'a', text: 'ü😀', yes: true, tiny: 1, small: 32000, whole: 7, safe: 9007199254740991 },
      ...{ big: 9007199254740993n, double: 1.5, float: 0.5, decimal: 12.34, long_decimal: '12345678901234567890.5' },
      ...{ date: new Date('2024-02-29'), timestamp: new Date('2024-02-29T12:30:00.123Z') },
      ...{ ntz: new Date('2024-02-29T12:30:00Z'), binary: new Uint8Array([0, 255]), list: [1, null, 3] },
      ...{ struct: { x: 1, y: ['z'] }, map: { k: 1.5 }, nothing: null },
    }
    expect(responses.get('a')?.answer).toEqual(input)
    const nulls = Object.fromEntries(Object.keys(input).map((name) => [name, null]))
    expect(responses.get('b')?.answer).toEqual({ ...nulls, id: 'b' })
  })

  test('rows as they are', async () => {
    const sql =
      '-- one\n/* two */ WITH three AS (SELECT explode(sequence(1, :n)) AS n) SELECT n, n % 2 = 0 AS even FROM three; '
    expect(await all(sparkRows({ sql, args: { n: 3 }, ...on }))).toEqual([
      ...[{ n: 1, even: false }],
      ...[{ n: 2, even: true }],
      ...[{ n: 3, even: false }],
    ])
    // What is whole is so in SQL, as small as it can be: LIMIT wants an INT.
    const types = 'SELECT typeof(:a) AS a, typeof(:b) AS b, typeof(:c) AS c FROM range(10) LIMIT :n'
    expect(await all(sparkRows({ sql: types, args: { a: 1, b: 2 ** 40, c: 0.5, n: 1 }, ...on }))).toEqual([
      { a: 'int', b: 'bigint', c: 'double' },
    ])
  })

  test('no room for rows that wait', async () => {
    const { TMPDIR } = process.env
    process.env.TMPDIR = spark.path('no such folder')
    try {
      const error = await refusal(() => all(sparkRows({ sql: QUESTIONS, ...on })))
      expect(error).toMatchObject({
        code: 'SOURCE_FAILED',
        message: expect.stringMatching(/cannot be kept in .*no such folder: ENOENT.*TMPDIR/),
      })
    } finally {
      if (TMPDIR === undefined) delete process.env.TMPDIR
      else process.env.TMPDIR = TMPDIR
    }
  })

  test('no rows are no tasks', async () => {
    const tasks = sparkTasks({ sql: 'SELECT 1 AS id LIMIT 0', id: 'id', agent: echo, ...on })
    expect(await all(tasks)).toEqual([])
    expect((await Runners.runTask(tasks, here)).size).toBe(0)
  })

  test('who stops early stops the query', { timeout: 120_000 }, async () => {
    // Hours of work, if nobody stopped it: then the next query would not get a core.
    const slow =
      "SELECT concat('s', id) AS id FROM range(0, 1000000, 1, 50) WHERE id = 0 OR reflect('java.lang.Thread', 'sleep', 50L) IS NULL"
    const tasks = sparkTasks({ sql: slow, id: 'id', agent: echo, ...on })
    const iterator = tasks[Symbol.asyncIterator]()
    const first = iterator.next()
    await sleep(3000)
    await iterator.return?.()
    expect(await first).toMatchObject({ done: true })
    for await (const task of sparkTasks({ sql: QUESTIONS, id: 'id', agent: echo, ...on })) {
      expect(task.id).toBe('q0')
      break
    }
    expect(await spark.query('SELECT count(*) AS n FROM range(100000)')).toEqual([{ n: 100_000 }])
  })

  describe('in slices', () => {
    test('each row is there once', async () => {
      const sql = 'SELECT id AS id FROM range(5000) UNION ALL SELECT null AS id WHERE false'
      const read = await all(sparkTasks({ sql, id: 'id', slices: 7, agent: echo, ...on }))
      expect(new Set(idsOf(read)).size).toBe(5000)
      expect(read).toHaveLength(5000)
    })

    test.each([
      ['in number', 'SELECT id FROM range(5000) WHERE rand() < 0.5'],
      ['of the same number', 'SELECT id FROM range(5000) ORDER BY rand() LIMIT 2500'],
    ])('a query that gives other rows each time, %s, is noticed', async (_, sql) => {
      const error = await refusal(() => all(sparkTasks({ sql, id: 'id', slices: 5, agent: echo, ...on })))
      expect(error).toMatchObject({
        code: 'SOURCE_FAILED',
        message: expect.stringMatching(/query \d of 5 gave \d+ rows, but there were \d+ when they were counted/),
      })
    })

    test('more rows than Spark gives at once, in a memory that does not grow with them', {
      timeout: 300_000,
    }, async () => {
      const [rows, width] = [200_000, 1000]
      // Random text, and so 200 MB also where it is compressed.
      const query = `SELECT concat('b', id) AS id, substr(repeat(concat(sha2(string(id), 512), sha2(string(-id), 512)), 4), 1, ${width}) AS text FROM range(${rows})`
      const parquet = await spark.makeParquet('big', query)
      const one = {
        sql: `SELECT * FROM parquet.\`${parquet}\``,
        id: 'id',
        input: 'text',
        agent: answer,
        ...on,
      } as const
      const error = await refusal(() => all(sparkTasks(one)))
      expect(error).toMatchObject({ code: 'SPARK_FAILED', message: expect.stringContaining('`slices`') })
      expect(error.message).toContain('spark.driver.maxResultSize')

      const before = liveBytes()
      let [count, chars, peak] = [0, 0, 0]
      for await (const task of sparkTasks({ parquet, id: 'id', input: 'text', agent: answer, ...on })) {
        chars += task.input.length
        if (++count % 10_000 === 0) peak = Math.max(peak, liveBytes())
      }
      expect({ count, chars }).toEqual({ count: rows, chars: rows * width })
      expect((peak - before) / 1024 / 1024).toBeLessThan(128)
    })
  })

  describe('mistakes are one error', () => {
    const source = { sql: QUESTIONS, id: 'id', input: 'question', agent: answer, ...on } as const

    test.each<[string, object, RegExp]>([
      ['no source', { sql: undefined }, /give one of `sql`, `table`, `parquet`, none was given/],
      ['two sources', { table: 'x' }, /not `sql`, `table` together/],
      ['no id', { id: undefined }, /`id` must be the name of a column, or a function/],
      ['no agent', { agent: 'answer' }, /`agent` must be what defineAgent\(\) returned/],
      ['an unknown key', { parquets: 'x' }, /unknown key 'parquets', did you mean 'parquet'\?/],
      ['slices by a function', { id: () => 'x', slices: 3 }, /so `id` must be a column/],
      ['an argument undefined', { args: { day: undefined } }, /`args\.day` is undefined; it must be text, a number/],
      ['an argument NaN', { args: { n: Number.NaN } }, /`args\.n` is NaN/],
      ['an argument list', { args: { n: 1, ids: ['a'] } }, /`args\.ids` is an array/],
      ['an argument date', { args: { day: new Date(0) } }, /`args\.day` is a date/],
      ['an argument bytes', { args: { b: new Uint8Array(1) } }, /`args\.b` is an object/],
      ['an argument function', { args: { f: () => 1 } }, /`args\.f` is a function/],
      ['arguments in a list', { args: [1] }, /`args` must be an object of values .* this is an array/],
      ['arguments of a table', { sql: undefined, table: 'x', args: {} }, /`args` are for the :names in `sql`/],
    ])('%s', (_, other, message) => {
      expect(() => sparkTasks({ ...source, ...other } as SparkTasksOptions)).toThrow(message)
    })

    test.each<[string, object, RegExp]>([
      [
        'a column',
        { input: 'qestion' },
        /no column 'qestion'; did you mean "question"\? There are 'id', 'question', 'n'/,
      ],
      ['an id', { id: 'ID', input: undefined }, /no column 'ID'; did you mean "id"\?/],
      ['a path', { sql: undefined, parquet: '/no/such/path' }, /Path does not exist: file:\/no\/such\/path/],
      ['a table', { sql: undefined, table: 'no_such' }, /table or view `no_such` cannot be found/],
      ['SQL', { sql: 'SELECT id FRM range(1)' }, /must be one query.* Syntax error at or near 'range'.*line 1, pos 14/],
      ['no SQL', { sql: 'SELEC 1' }, /must be one query.* Syntax error at or near/],
      ['a name', { sql: 'SELECT 1 AS id, 2 AS id', input: undefined }, /two columns are called 'id'/],
      [
        'a null id',
        { sql: 'SELECT CAST(null AS string) AS id, 1 AS question' },
        /row 1 has no id: column 'id' is null/,
      ],
      ['a kind of id', { sql: 'SELECT true AS id, 1 AS question' }, /the id of row 1 must be text or a number/],
      [
        'a function',
        { input: (row: Row) => (row.no as Row).where },
        /`input` threw for the task 'q0': Cannot read properties of undefined/,
      ],
      ['an option', { spark: { remot: 'x' } }, /unknown key 'spark.remot'/],
    ])('%s', async (_, other, message) => {
      const tasks = sparkTasks({ ...source, ...other } as SparkTasksOptions)
      const error = await refusal(() => Runners.runTask(tasks as AsyncIterable<TaskLike<typeof answer>>, here))
      expect(error.code).toBe('SOURCE_FAILED')
      expect(error.message).toMatch(message)
    })

    test('the same id twice', async () => {
      const tasks = sparkTasks({ ...source, sql: "SELECT 'one' AS id, 'x' AS question FROM range(2)" })
      expect(await refusal(() => Runners.runTask(tasks, here))).toMatchObject({ code: 'TASK_DUPLICATE_ID' })
    })
  })
})

describe('writing', () => {
  const three = ['a', 'b', 'c'].map((id) => response(id))

  test('modes: error, append, overwrite', async () => {
    const parquet = spark.path('modes')
    const ids = async () => byId(await spark.readParquet(parquet)).map(({ id }) => id)
    expect(await sparkSink({ parquet, ...on }).write(three)).toEqual({ rows: 3, batches: 1 })
    const error = await refusal(() => sparkSink({ parquet, ...on }).write(three))
    expect(error).toMatchObject({
      code: 'CONFIG_INVALID',
      message: expect.stringContaining(`'${parquet}' already exists`),
    })
    expect(await ids()).toEqual(['a', 'b', 'c'])
    await sparkSink({ parquet, mode: 'append', ...on }).write([response('d')])
    expect(await ids()).toEqual(['a', 'b', 'c', 'd'])
    // The first batch replaces what was there, the others do not.
    const written = await sparkSink({ parquet, mode: 'overwrite', batchRows: 1, ...on }).write(three.slice(1))
    expect(written).toEqual({ rows: 2, batches: 2 })
    expect(await ids()).toEqual(['b', 'c'])
  })

  test('a table, from a map', async () => {
    const responses = new Map(three.map((one) => [one.id, one]))
    await sparkSink({ table: 'answers', ...on }).write(responses)
    await sparkSink({ table: 'answers', mode: 'append', ...on }).write([response('d')])
    expect(byId(await spark.readTable('answers')).map(({ id }) => id)).toEqual(['a', 'b', 'c', 'd'])
    expect(await refusal(() => sparkSink({ table: 'answers', ...on }).write(three))).toMatchObject({
      message: expect.stringContaining("the table 'answers' already exists"),
    })
    await sparkSink({ table: 'answers', mode: 'overwrite', ...on }).write(three)
    expect(await spark.readTable('answers')).toHaveLength(3)
  })

  test('what is refused is refused before there is an answer', async () => {
    const parquet = spark.path('occupied')
    mkdirSync(parquet)
    // With `inLocal` a run is begun at once, so that it can say how large Spark is to be; its answers are not waited for.
    async function* never() {
      yield await sleep(3_600_000, response('a'), { ref: false })
    }
    const error = await refusal(() => sparkSink({ parquet, ...on }).write(never()))
    expect(error.message).toContain(`'${parquet}' already exists`)
    const elsewhere = { parquet: spark.path('elsewhere'), ...on }
    const schema = await refusal(() => sparkSink({ ...elsewhere, schema: 'id strin' }).write(three))
    expect(schema.message).toMatch(/Spark does not understand the schema 'id strin': .*Syntax error/)
    const keys = await refusal(() => sparkSink({ ...elsewhere, schema: 'v map<int,string>' }).write(three))
    expect(keys.message).toContain('the keys of a map must be text')
    const partition = await refusal(() => sparkSink({ ...elsewhere, partitionBy: 'x' }).write(three))
    expect(partition.message).toContain("`partitionBy` names 'x', which is not a column; columns: id, agent")
  })

  test('answers as JSON, or with the types of a schema', async () => {
    const answers: unknown[] = [
      ...['text', '', 1.5, 12345678901234567890n, true, null, { b: [1, 2.5, 'ü'], n: 1e21 }, [null], new Date(0)],
      ...[new Map([['k', 1]]), new Set([1]), new Uint8Array([255]), Number.NaN, undefined],
    ]
    const responses = answers.map((one, index) => response(String.fromCharCode(97 + index), { answer: one }))
    const parquet = spark.path('json')
    await sparkSink({ parquet, ...on }).write(responses)
    expect(byId(await spark.readParquet(parquet)).map((row) => row.answer)).toEqual([
      ...['text', '', '1.5', '12345678901234567890', 'true', null, '{"b":[1,2.5,"ü"],"n":1e+21}', '[null]'],
      ...['1970-01-01T00:00:00.000Z', '{"k":1}', '[1]', '/w==', 'NaN', null],
    ])

    const shaped = spark.path('shaped')
    const schema = 'id string, answer struct<score: double, tags: array<string>>, attempts bigint'
    const graded = [
      response('a', { answer: { score: 1, tags: ['x', null], more: 1 } }),
      response('b', { answer: null }),
    ]
    await sparkSink({ parquet: shaped, schema, ...on }).write(graded)
    expect(byId(await spark.readParquet(shaped))).toEqual([
      { id: 'a', answer: { score: 1, tags: ['x', null] }, attempts: 1 },
      { id: 'b', answer: null, attempts: 1 },
    ])
  })

  const values = {
    ...{ id: 'a', yes: true, tiny: 1, small: 2, whole: 3, big: 9007199254740993n, float: 0.5, double: 0.1 },
    ...{
      decimal: '12345678901234567890.50',
      date: new Date('2024-02-29'),
      time: new Date('2024-02-29T12:30:00.123Z'),
    },
    ...{
      ntz: new Date('2024-02-29T12:30:00.123Z'),
      binary: Buffer.from([0, 255]),
      list: [1, null],
      map: new Map([['k', 1]]),
    },
    ...{ struct: { x: 1n, y: [{ z: Number.POSITIVE_INFINITY }] }, nothing: undefined },
  }

  test('every type, and nulls', async () => {
    const schema = `id string, yes boolean, tiny tinyint, small smallint, whole int, big bigint, float float, double double,
      decimal decimal(38, 2), date date, time timestamp, ntz timestamp_ntz, binary binary, list array<int>, map map<string, int>,
      struct struct<x: bigint, y: array<struct<z: double>>>, nothing array<string>`
    const parquet = spark.path('types')
    const row = ({ id }: TaskResponse) => (id === 'c' ? undefined : id === 'b' ? { id } : values)
    const written = await sparkSink({ parquet, schema, row, ...on }).write(three)
    expect(written).toEqual({ rows: 2, batches: 1 })
    const expected = {
      ...{ ...values, binary: new Uint8Array([0, 255]), map: { k: 1 } },
      ...{ struct: { x: 1, y: [{ z: Number.POSITIVE_INFINITY }] }, nothing: null },
    }
    const nulls = Object.fromEntries(Object.keys(expected).map((name) => [name, null]))
    expect(byId(await spark.readParquet(parquet))).toEqual([expected, { ...nulls, id: 'b' }])
  })

  test('without a schema, the types of the first rows', async () => {
    const parquet = spark.path('guessed')
    const rows: Row[] = [
      {
        id: 'a',
        n: 1,
        big: 1,
        mixed: 1,
        half: null,
        when: new Date(0),
        bytes: new Uint8Array([1]),
        list: [1],
        none: null,
      },
      { id: 'b', n: 2, big: 2n ** 60n, mixed: 'x', half: 0.5, yes: false },
      { id: 'c', n: 0.5 },
    ]
    const row = ({ id }: TaskResponse) => rows.find((one) => one.id === id)
    await sparkSink({ parquet, row, batchRows: 2, ...on }).write(three)
    const none = { big: null, mixed: null, half: null, when: null, bytes: null, list: null, none: null, yes: null }
    expect(byId(await spark.readParquet(parquet))).toEqual([
      { ...none, id: 'a', n: 1, big: 1, mixed: '1', when: new Date(0), bytes: new Uint8Array([1]), list: '[1]' },
      { ...none, id: 'b', n: 2, big: 2n ** 60n, mixed: 'x', half: 0.5, yes: false },
      { ...none, id: 'c', n: 0.5 },
    ])
    // Files of other types would lie beside these.
    const other = await refusal(() =>
      sparkSink({ parquet, mode: 'append', row: () => ({ id: 'd', n: 'x' }), ...on }).write(three),
    )
    expect(other.message).toContain(`column 'n' of '${parquet}' is double, but the new rows have string`)
  })

  test('no responses are an empty table', async () => {
    const parquet = spark.path('none')
    expect(await sparkSink({ parquet, ...on }).write([])).toEqual({ rows: 0, batches: 1 })
    expect(await spark.readParquet(parquet)).toEqual([])
    const guess = await refusal(() =>
      sparkSink({ parquet: spark.path('none2'), row: () => undefined, ...on }).write(three),
    )
    expect(guess.message).toContain('the columns are not known')
    const schema = 'id string'
    await sparkSink({ parquet: spark.path('none3'), row: () => undefined, schema, ...on }).write(three)
    expect(await spark.query(`SELECT count(*) AS n, count(id) AS i FROM parquet.\`${spark.path('none3')}\``)).toEqual([
      { n: 0, i: 0 },
    ])
  })

  test('folders by the values of a column', async () => {
    const parquet = spark.path('by status')
    const failed = response('d', { success: false, status: 'timeout' } as Partial<TaskResponse>)
    await sparkSink({ parquet, partitionBy: 'status', ...on }).write([...three, failed])
    expect(existsSync(`${parquet}/status=timeout`)).toBe(true)
    expect(await spark.readParquet(`${parquet}/status=success`)).toHaveLength(3)
    await sparkSink({ parquet, partitionBy: ['status'], mode: 'append', ...on }).write([response('e')])
    expect(await spark.readParquet(parquet)).toHaveLength(5)
  })

  test('a row that does not fit: one error, which says what is written', async () => {
    const parquet = spark.path('misfit')
    const schema = 'id string, n int'
    let ended = false
    async function* responses() {
      try {
        for (let i = 0; ; i++) {
          yield response(`r${i}`)
          await sleep(1)
        }
      } finally {
        ended = true
      }
    }
    const row = ({ id }: TaskResponse) => ({ id, n: id === 'r25' ? 'many' : 1 })
    const error = await refusal(() => sparkSink({ parquet, schema, row, batchRows: 10, ...on }).write(responses()))
    expect(error.code).toBe('CONFIG_INVALID')
    expect(error.message).toMatch(/response 'r25' .* column 'n' is the text "many", which an int cannot hold/)
    expect(error.message).toContain('(20 rows in 2 batches were written before)')
    expect(ended).toBe(true)
    expect(await spark.readParquet(parquet)).toHaveLength(20)
  })

  test('responses that end with an error: it is told, and what is written stays', async () => {
    const parquet = spark.path('cut short')
    async function* responses() {
      yield* three
      throw new RangeError('no more')
    }
    await expect(sparkSink({ parquet, batchRows: 2, ...on }).write(responses())).rejects.toThrow(
      new RangeError('no more'),
    )
    expect(await spark.readParquet(parquet)).toHaveLength(2)
  })

  test.each<[string, object, RegExp]>([
    ['throws', { row: () => JSON.parse('{') }, /response 'a' cannot be made a row: `row` threw: .*JSON/],
    [
      'is a promise',
      { row: () => Promise.reject(new Error('x')) },
      /response 'a' .* `row` must return the row, not a promise/,
    ],
    ['is a promise, with a schema', { row: async () => ({ id: 'x' }), schema: 'id string' }, /'a' .* not a promise/],
    ['is empty', { row: () => ({}) }, /response 'a' .* `row` returned an object without properties/],
    ['has no date', { row: () => ({ day: new Date(Number.NaN) }) }, /'a' .* column 'day' is an invalid date/],
    [
      'has no date, with a schema',
      { row: () => ({ id: 'x', day: new Date(Number.NaN) }), schema: 'id string, day date' },
      /'a' .* column 'day' is an invalid date/,
    ],
    ['has a symbol', { row: () => ({ s: Symbol('x') }) }, /'a' .* column 's' is a symbol/],
    ['has a function', { row: () => ({ f: () => 1 }), schema: 'f string' }, /'a' .* column 'f' is a function/],
    ['has a function inside', { row: () => ({ o: { f: () => 1 } }) }, /'a' .* column 'o' has, at 'f', a function/],
    [
      'has a symbol in a list, with a schema',
      { row: () => ({ l: ['x', Symbol('y')] }), schema: 'l array<string>' },
      /'a' .* column 'l' has, at '1', a symbol/,
    ],
    ['has a promise', { row: () => ({ p: Promise.resolve(1) }) }, /'a' .* column 'p' is a promise/],
    [
      'is none',
      { row: () => 5 },
      /response 'a' cannot be made a row: `row` must return an object or undefined; it returned a number/,
    ],
    [
      'has another column',
      { row: () => ({ ID: 1 }), schema: 'id string' },
      /a column 'ID', which is not in the schema; did you mean "id"\? There are id \(nothing was written\)$/,
    ],
    [
      'has a new column',
      { row: ({ id }: TaskResponse) => ({ [id]: 1 }), batchRows: 1 },
      /response 'b' .* a column 'b', which no row of the first batch had/,
    ],
    [
      'is circular',
      { row: (one: TaskResponse) => ({ one: Object.assign(one, { one }) }) },
      /response 'a' cannot be made a row: .*circular/,
    ],
    [
      'is not in a response',
      { schema: 'id string, scor double' },
      /'scor' is in the schema, and responses have no such column/,
    ],
  ])('a row that %s', async (_, options, message) => {
    const fresh = ['a', 'b'].map((id) => response(id))
    const error = await refusal(() =>
      sparkSink({ parquet: spark.path('bad rows'), mode: 'overwrite', ...options, ...on }).write(fresh),
    )
    expect(error).toMatchObject({ code: 'CONFIG_INVALID', message: expect.stringMatching(message) })
  })

  test.each<[object, RegExp]>([
    [{}, /give one of `table`, `parquet`, none was given/],
    [{ parquet: 'x', table: 'y' }, /not `table`, `parquet` together/],
    [{ parquet: 'x', mode: 'replace' }, /`mode` must be one of `error`, `overwrite`, `append`/],
    [{ parquet: 'x', batchrows: 5 }, /unknown key 'batchrows', did you mean 'batchRows'\?/],
    [{ parquet: ['x'] }, /`parquet` must be one path/],
  ])('%j', (options, message) => {
    expect(() => sparkSink(options as SparkSinkOptions)).toThrow(message)
  })

  test('a promise of responses', async () => {
    const promise = Promise.resolve(three) as unknown as TaskResponse[]
    const error = await refusal(() => sparkSink({ parquet: spark.path('p'), ...on }).write(promise))
    expect(error.message).toContain('a Promise: await it first')
  })

  test.each<[unknown, RegExp]>([
    [undefined, /streamTask; this is undefined$/],
    [{}, /streamTask; this is an object$/],
    [[undefined], /this is not a response: undefined;/],
    [[{}], /this is not a response: an empty object;/],
    [[echo.task(1)], /this is not a response: an object with input, agent;/],
    [new Map([['a', 1]]).entries(), /this is not a response: an array;/],
  ])('no responses at all: %j', async (given, message) => {
    const sink = sparkSink({ parquet: spark.path('no responses'), ...on })
    const error = await refusal(() => sink.write(given as TaskResponse[]))
    expect(error).toMatchObject({ code: 'CONFIG_INVALID', message: expect.stringMatching(message) })
  })
})

test('nothing is written over what is read', { timeout: 120_000 }, async () => {
  const parquet = await spark.makeParquet('both', QUESTIONS)
  await spark.query(`CREATE TABLE both_table AS ${QUESTIONS}`)
  for (const same of [{ parquet }, { table: 'both_table' }]) {
    const tasks = sparkTasks({ ...same, id: 'id', input: 'question', agent: answer, ...on })
    const into = 'table' in same ? { table: 'default.both_table' } : { parquet: `file:${parquet}/` }
    const sink = sparkSink({ ...into, mode: 'overwrite', ...on })
    const error = await refusal(() => sink.write(Runners.streamTask(tasks, here)))
    expect(error).toMatchObject({
      code: 'CONFIG_INVALID',
      message: expect.stringContaining('is what the tasks are read from'),
    })
    expect(await all(tasks)).toHaveLength(2000)
    // Once it is read, it may be.
    const responses = await Runners.runTask(tasks, here)
    expect(await sink.write(responses)).toMatchObject({ rows: 2000 })
  }
})

test('a run that is resumed writes all answers, each once', { timeout: 120_000 }, async () => {
  const parquet = await spark.makeParquet('resumed questions', QUESTIONS)
  const tasks = sparkTasks({ parquet, id: 'id', input: 'question', agent: answer, ...on })
  const run = { runId: 'resumed', resume: 'auto', store: spark.path('runs'), ...here } as const
  const sink = sparkSink({ parquet: spark.path('resumed answers'), mode: 'overwrite', batchRows: 500, ...on })
  async function* cutShort() {
    let count = 0
    for await (const one of Runners.streamTask(tasks, run)) {
      if (++count > 1200) throw new Error('the driver is gone')
      yield one
    }
  }
  await expect(sink.write(cutShort())).rejects.toThrow('the driver is gone')
  let restored = 0
  async function* again() {
    for await (const one of Runners.streamTask(tasks, run)) {
      if (one.restored) restored++
      yield one
    }
  }
  expect(await sink.write(again())).toMatchObject({ rows: 2000 })
  expect(restored).toBeGreaterThan(1000)
  const rows = await spark.readParquet(spark.path('resumed answers'))
  expect(new Set(rows.map(({ id }) => id)).size).toBe(2000)
})

/** For the compiler: an input that is made of a row must fit the agent. */
export function typed(): void {
  const options = { sql: 'SELECT 1', id: 'id', agent: answer } as const
  const tasks: AsyncIterable<TaskLike<typeof answer>> = sparkTasks({ ...options, input: (row) => String(row.question) })
  void Runners.streamTask(tasks)
  // @ts-expect-error: it takes text
  sparkTasks({ ...options, input: (row) => Number(row.question) })
  sparkTasks({ ...options, input: (row: { question: string }) => row.question })
  // @ts-expect-error: there is always an id
  sparkTasks({ sql: 'SELECT 1', agent: answer })
  const sink = sparkSink({ table: 't', row: (response: TaskResponse<string>) => ({ length: response.answer?.length }) })
  void sink.write(Runners.streamTask(tasks))
  // @ts-expect-error: other answers
  void sink.write(Runners.streamTask([grade.task({ text: '', least: 1 })]))
}
