import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { type RunConfig, Runners } from 'manyworlds'
import { needsOf, SPARK_VERSION } from '../dist/engines/spark/environment.js'
import { ensureEnvironment } from '../dist/python/environment.js'
import { startNode } from '../test/nodes/daemon.ts'
import { finishing, noop } from './agents.ts'
import { median, numberOf } from './figures.ts'
import { describeMachine } from './machine.ts'

/**
 * manyworlds on Spark beside plain PySpark, on one Spark that this starts, in interleaved rounds: tasks that wait, with one that
 * takes much longer, how soon a finished one is delivered, and no-op tasks against the nodes engine.
 *
 *   node bench/spark.ts [--rounds N] [--noops N]
 */
const ROUNDS = numberOf('--rounds', 3)
const NOOPS = numberOf('--noops', 100_000)
const WORKERS = 4
const STRAGGLER_MS = 5000
/** Our workers stay, and leave PySpark as many cores as they have themselves. */
const MASTER = `local[${2 * WORKERS + 1}]`

const python = await ensureEnvironment(needsOf(SPARK_VERSION), (line) => console.error(line))
const plain = await startPlain()
const spark: RunConfig = { engineName: 'spark', spark: { remote: plain.remote }, store: false, keepWarmMs: 600_000 }
const node = await startNode({ args: ['--workers', '2'] })
const nodes: RunConfig = {
  engineName: 'nodes',
  nodes: { addresses: [node.address] },
  store: false,
  keepWarmMs: 600_000,
}
const figures: Record<string, number[]> = {}
const note = (name: string, value: number) => void (figures[name] ??= []).push(value)

try {
  const sleeps = mixed()
  // The first job of either starts processes, which is not what is compared.
  await plain.ask({ sleeps: [1, 1, 1, 1] })
  await ours(sleeps.map(() => 1))
  for (let round = 0; round < ROUNDS; round++) {
    const theirs = await plain.ask({ sleeps })
    note('plain seconds', theirs.seconds)
    note('plain lag', 1000 * median(theirs.lags!))
    const { seconds, lags } = await ours(sleeps)
    note('our seconds', seconds)
    note('our lag', median(lags))
    note('our worst lag', Math.max(...lags))
  }
  await Runners.shutdown()
  for (const config of [spark, nodes]) await throughput(config, 5000)
  for (let round = 0; round < ROUNDS; round++) {
    note('spark no-ops', await throughput(spark, NOOPS))
    note('nodes no-ops', await throughput(nodes, NOOPS))
    note('plain no-ops', NOOPS / (await plain.ask({ noops: NOOPS })).seconds)
  }
  report(sleeps)
} finally {
  await Runners.shutdown()
  await node.kill('SIGTERM')
  plain.end()
}

function report(sleeps: readonly number[]): void {
  const of = (name: string) => median(figures[name]!)
  const whole = (value: number) => Math.round(value).toLocaleString('en')
  const sum = sleeps.reduce((all, ms) => all + ms, 0) / 1000
  console.log(
    `Spark ${SPARK_VERSION} on ${MASTER}, ${WORKERS} partitions or workers, median of ${ROUNDS} interleaved rounds\n`,
  )
  console.log(`${sleeps.length} tasks that wait, ${sum.toFixed(0)} s in all, one of them ${STRAGGLER_MS / 1000} s\n`)
  console.log('| | seconds | finished to delivered, median |\n|---|---:|---:|')
  console.log(`| PySpark \`mapPartitions\` | ${of('plain seconds').toFixed(1)} | ${whole(of('plain lag'))} ms |`)
  console.log(`| manyworlds | ${of('our seconds').toFixed(1)} | ${of('our lag').toFixed(1)} ms |`)
  console.log(`\nthe longest that a finished task of ours waited: ${of('our worst lag').toFixed(0)} ms\n`)
  console.log(`${whole(NOOPS)} no-op tasks, warm, 2 workers\n`)
  console.log('| | tasks per second |\n|---|---:|')
  console.log(`| manyworlds on Spark | ${whole(of('spark no-ops'))} |`)
  console.log(`| manyworlds on a node | ${whole(of('nodes no-ops'))} |`)
  console.log(`| PySpark \`mapPartitions\`, rows of a number | ${whole(of('plain no-ops'))} |`)
  console.log(`\nSpark against nodes: ${(of('spark no-ops') / of('nodes no-ops')).toFixed(2)}\n`)
  console.log(describeMachine())
}

/** 200 from 50 to 1,000 ms, always the same, and one that takes long. */
function mixed(): number[] {
  let state = 1
  const sleeps = Array.from({ length: 200 }, () => {
    state = (state * 48_271) % 2_147_483_647
    return 50 + (state % 950)
  })
  sleeps[20] = STRAGGLER_MS
  return sleeps
}

async function ours(sleeps: readonly number[]): Promise<{ seconds: number; lags: number[] }> {
  const began = performance.now()
  const lags: number[] = []
  const tasks = sleeps.map((ms) => finishing.task(ms))
  for await (const response of Runners.streamTask(tasks, { ...spark, workerNum: WORKERS }))
    if (response.success) lags.push(Date.now() - response.answer)
  if (lags.length !== sleeps.length) throw new Error('a task failed')
  return { seconds: (performance.now() - began) / 1000, lags }
}

/** Tasks per second. */
async function throughput(config: RunConfig, count: number): Promise<number> {
  const tasks = Array.from({ length: count }, (_, id) => noop.task({ id, text: 'x'.repeat(100) }))
  const began = performance.now()
  let answered = 0
  for await (const { success } of Runners.streamTask(tasks, { ...config, workerNum: 2 })) if (success) answered++
  if (answered !== count) throw new Error(`${answered} of ${count} succeeded`)
  return (1000 * count) / (performance.now() - began)
}

interface Plain {
  readonly remote: string
  ask(job: object): Promise<{ seconds: number; lags?: number[] }>
  end(): void
}

async function startPlain(): Promise<Plain> {
  const script = fileURLToPath(new URL('spark_plain.py', import.meta.url))
  const token = randomBytes(16).toString('hex')
  const child = spawn(python, [script, MASTER, String(WORKERS)], {
    stdio: ['pipe', 'pipe', 'ignore'],
    env: { ...process.env, SPARK_CONNECT_AUTHENTICATE_TOKEN: token, PYSPARK_PYTHON: python },
  })
  const answers = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const next = async () => {
    const { value, done } = await answers.next()
    if (done) throw new Error('PySpark has ended')
    return JSON.parse(value)
  }
  const { port } = await next()
  return {
    remote: `sc://127.0.0.1:${port}/;token=${token}`,
    ask: (job) => {
      child.stdin.write(`${JSON.stringify(job)}\n`)
      return next()
    },
    end: () => void child.stdin.end(),
  }
}
