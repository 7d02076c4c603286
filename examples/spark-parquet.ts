// Questions in Parquet, answers in Parquet, and 10,000 tasks in between, all on one Spark, which is started here for it.
import { rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import { defineAgent, Runners } from 'manyworlds'
import { sparkRows, sparkSink, sparkTasks } from 'manyworlds/spark'

const ask = defineAgent({ name: 'ask', run: async (n: number) => `What is ${n} times ${n}?` })

const answer = defineAgent({
  name: 'answer',
  run: async (question: string) => {
    const [a = 0, b = 0] = question.match(/\d+/g)?.map(Number) ?? []
    return String(a * b)
  },
})

// Said to all of them, so that they share it. On a cluster: { spark: { remote: 'sc://spark.company:15002' } }.
const on = { inLocal: true }
const run = { engineName: 'spark', workerNum: 2, store: false, ...on } as const
// They say how far they are when it takes long; the first thing is to start Spark.
const data = { ...on, progress: true }
const folder = join(tmpdir(), `spark-parquet-${process.pid}`)
const questions = join(folder, 'questions')
const answers = join(folder, 'answers')

// Tasks are read while others run, and answers are written while more are read: nothing is held as a whole.
const numbers = sparkTasks({ sql: 'SELECT id FROM range(10000)', id: 'id', input: 'id', agent: ask, ...data })
const asked = await sparkSink({
  parquet: questions,
  row: ({ id, answer }) => ({ id, question: answer }),
  ...data,
}).write(Runners.streamTask(numbers, run))
console.log(`${asked.rows} questions written`)

const tasks = sparkTasks({ parquet: questions, id: 'id', input: 'question', agent: answer, ...data })
const answered = await sparkSink({ parquet: answers, ...data }).write(Runners.streamTask(tasks, run))
console.log(`${answered.rows} answers written`)

// What Spark finds in the files, and what should be there; the order of rows does not matter to a sum.
const sql = `SELECT count(*) AS rows, sum(crc32(concat(id, '=', answer))) AS checksum FROM parquet.\`${answers}\``
const expected = Array.from({ length: 10_000 }, (_, n) => crc32(`${n}=${n * n}`)).reduce((sum, one) => sum + one)
for await (const { rows, checksum } of sparkRows({ sql, ...data }))
  console.log(`${rows} rows read back, checksum ${checksum}: ${checksum === expected ? 'as expected' : 'WRONG'}`)

await Runners.shutdown()
rmSync(folder, { recursive: true })
