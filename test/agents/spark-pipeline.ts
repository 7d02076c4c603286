import { sparkSink, sparkTasks } from '../../dist/engines/spark/index.js'
import { Runners } from '../../dist/index.js'
import { double } from './nodes.ts'

/** A driver whose tasks come from the Spark that SPARK_REMOTE names, and whose answers go there: so many rows, to that folder. */
const [rows = '1000', parquet = ''] = process.argv.slice(2)
const tasks = sparkTasks({
  ...{ sql: `SELECT CAST(id AS STRING) AS id, CAST(id AS INT) AS n FROM range(${rows})`, id: 'id', input: 'n' },
  ...{ slices: 4, agent: double },
})
const responses = Runners.streamTask(tasks, { engineName: 'spark', store: false, progress: false })
const written = await sparkSink({ parquet, mode: 'overwrite', batchRows: Math.ceil(Number(rows) / 10) }).write(
  responses,
)
console.log(JSON.stringify(written))
