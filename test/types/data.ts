// Compiled by `npm run check`, never run: data sets, from the row to the response.
import { defineAgent, Runners, type TaskLike, type TaskResponse } from 'manyworlds'
import {
  type CsvRow,
  type DataSet,
  fromCsv,
  fromJsonl,
  fromParquet,
  sample,
  split,
  type splitOf,
} from 'manyworlds/data'
import * as z from 'zod/mini'
import { same } from './equal.ts'

const explain = defineAgent({ name: 'explain', run: async (input: string, ctx) => `${input} ${ctx.task.id}` })
const double = defineAgent({ name: 'double', run: async (input: number) => input * 2 })
type Row = { readonly id: string; readonly question: string; readonly n: number }

// ---- the row's type is that of the function's parameter, the task's that of its result

const tasks = fromJsonl('q.jsonl', (row: Row, { file, line }) => {
  same<typeof file, string>(true)
  same<typeof line, number>(true)
  return row.n < 0 ? undefined : explain.task(row.question, { id: row.id })
})
same<typeof tasks, DataSet<TaskLike<typeof explain>>>(true)
same<typeof tasks.skipped, number>(true)
const responses = await Runners.runTask(tasks, { workerNum: 1 })
same<typeof responses, Map<string, TaskResponse<string>>>(true)
for await (const response of Runners.streamTask(tasks)) same<typeof response, TaskResponse<string>>(true)
const mixed = fromJsonl('q.jsonl', (row: Row) => (row.n > 1 ? double.task(row.n) : explain.task(row.question)))
for await (const response of Runners.streamTask(mixed)) same<typeof response, TaskResponse<string | number>>(true)

// @ts-expect-error: the wrong input for the agent
fromJsonl('q.jsonl', (row: Row) => explain.task(row.n))
// @ts-expect-error: nothing is known of a row whose type is not said
fromJsonl('q.jsonl', (row) => explain.task(row.question))
// @ts-expect-error: rows are not tasks
await Runners.runTask(fromJsonl<Row>('q.jsonl'))
// @ts-expect-error: a promise of a task is no task
await Runners.runTask(fromJsonl('q.jsonl', async (row: Row) => explain.task(row.question)))
// @ts-expect-error: no such option
fromJsonl('q.jsonl', (row: Row) => explain.task(row.question), { onBadRows: 'skip' })
// @ts-expect-error: no such value
fromJsonl('q.jsonl', { onBadRow: 'ignore' })
// @ts-expect-error: not a source
fromJsonl(42)

const rows = fromJsonl<Row>('q.jsonl', { onBadRow: 'skip' })
same<typeof rows, DataSet<Row>>(true)
const plain = fromJsonl('q.jsonl')
same<typeof plain, DataSet<unknown>>(true)

// ---- a schema says it, and checks it

const schema = z.object({ question: z.string(), n: z.coerce.number() })
const checked = fromJsonl('q.jsonl', (row) => double.task(row.n), { schema })
same<typeof checked, DataSet<TaskLike<typeof double>>>(true)
const checkedRows = fromCsv('q.csv', { schema })
same<typeof checkedRows, DataSet<{ question: string; n: number }>>(true)
// @ts-expect-error: the schema has no such field
fromJsonl('q.jsonl', (row) => explain.task(row.answer), { schema })

// ---- CSV: all fields are text

const ofCsv = fromCsv('q.csv', (row: CsvRow<'id' | 'question'>) => explain.task(row.question, { id: row.id }))
same<typeof ofCsv, DataSet<TaskLike<typeof explain>>>(true)
fromCsv('q.csv', (row) => {
  same<typeof row.question, string | undefined>(true)
  return undefined
})
const named = fromCsv('q.csv', (row) => explain.task(row.question), { columns: ['id', 'question'] })
same<typeof named, DataSet<TaskLike<typeof explain>>>(true)
const namedRows = fromCsv('q.csv', { columns: ['id', 'question'] })
same<typeof namedRows, DataSet<CsvRow<'id' | 'question'>>>(true)
// @ts-expect-error: not one of the columns
fromCsv('q.csv', (row) => explain.task(row.answer), { columns: ['id', 'question'] })
// @ts-expect-error: a number is never read from CSV
fromCsv('q.csv', (row: Row) => double.task(row.n))

// ---- Parquet

const ofParquet = fromParquet('q.parquet', (row: Row) => double.task(row.n), { columns: ['n'] })
same<typeof ofParquet, DataSet<TaskLike<typeof double>>>(true)
// @ts-expect-error: files only
fromParquet(process.stdin)

// ---- parts and samples keep the type

const { train, validation, test } = split(tasks, { train: 0.8, validation: 0.1, test: 0.1, seed: 1 })
same<typeof train, AsyncIterable<TaskLike<typeof explain>>>(true)
same<typeof validation, typeof test>(true)
for await (const response of Runners.streamTask(train)) same<typeof response, TaskResponse<string>>(true)
split(rows, { train: 0.9, test: 0.1, key: (row) => row.question })
split(['one', 'two'], { train: 0.9, test: 0.1 })
// @ts-expect-error: rows need a key
split(rows, { train: 0.9, test: 0.1 })
// @ts-expect-error: a key is a text
split(rows, { train: 0.9, test: 0.1, key: (row) => row.n })
// @ts-expect-error: no such part
split(tasks, { train: 0.9, dev: 0.1 })
same<ReturnType<typeof splitOf>, 'train' | 'validation' | 'test'>(true)
const some = sample(tasks, { limit: 50, seed: 1 })
same<typeof some, AsyncIterable<TaskLike<typeof explain>>>(true)
for await (const response of Runners.streamTask(some)) same<typeof response, TaskResponse<string>>(true)
// @ts-expect-error: how many?
sample(tasks, { seed: 1 })
