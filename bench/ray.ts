import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { type RunConfig, Runners, type TaskLike } from 'manyworlds'
import { needsOf, RAY_VERSION } from '../dist/engines/ray/environment.js'
import { ensureEnvironment } from '../dist/python/environment.js'
import { startCluster } from '../test/ray/cluster.ts'
import { noop, pause } from './agents.ts'
import { median, numberOf } from './figures.ts'
import { describeMachine } from './machine.ts'

/**
 * manyworlds on Ray beside plain Ray, on one cluster that this starts, in interleaved rounds: no-op tasks, many tasks that
 * wait, and how close many in flight come to the ideal.
 *
 *   node bench/ray.ts [--rounds N]
 */
const ROUNDS = numberOf('--rounds', 3)
const NOOPS = 100_000
const SLEEPS = numberOf('--sleeps', 1000)

const python = await ensureEnvironment(needsOf(RAY_VERSION), (line) => console.error(line))
const cluster = await startCluster(2, 2)
const { address, tokenFile } = cluster
const config: RunConfig = {
  engineName: 'ray',
  ray: { address, tokenFile },
  workerNum: 2,
  store: false,
  keepWarmMs: 600_000,
}
const figures: Record<string, number[]> = {}
const note = (name: string, value: number) => void (figures[name] ??= []).push(value)

try {
  await ours(Array.from({ length: 5000 }, (_, id) => noop.task({ id, text: '' })))
  for (let round = 0; round < ROUNDS; round++) {
    const plain = await plainRay()
    note('plain tasks', plain.tasks)
    note('plain calls', plain.calls)
    note('plain sleeps', plain.sleeps)
    note(
      'no-op',
      NOOPS / (await ours(Array.from({ length: NOOPS }, (_, id) => noop.task({ id, text: 'x'.repeat(100) })))),
    )
    note(
      'sleeps',
      await ours(
        Array.from({ length: SLEEPS }, () => pause.task(100)),
        { concurrency: 256 },
      ),
    )
    note(
      'in flight',
      await ours(
        Array.from({ length: 5000 }, () => pause.task(300)),
        { concurrency: 512 },
      ),
    )
  }
} finally {
  await Runners.shutdown()
  await cluster.stop()
}

const of = (name: string) => median(figures[name]!)
const whole = (value: number) => Math.round(value).toLocaleString('en')
console.log(
  `Ray ${RAY_VERSION}, two raylets of two CPUs with token authentication, 2 workers, median of ${ROUNDS} interleaved rounds\n`,
)
console.log('| no-op tasks | per second |\n|---|---:|')
console.log(`| plain \`@ray.remote\` tasks | ${whole(of('plain tasks'))} |`)
console.log(`| plain calls of two actors | ${whole(of('plain calls'))} |`)
console.log(`| manyworlds, 2 workers | ${whole(of('no-op'))} |`)
console.log(
  `\nagainst actor calls: ${(of('no-op') / of('plain calls')).toFixed(1)}x, against tasks: ${(of('no-op') / of('plain tasks')).toFixed(1)}x`,
)
console.log(
  `\n${SLEEPS} tasks of 100 ms: plain Ray tasks ${of('plain sleeps').toFixed(2)} s, manyworlds ${of('sleeps').toFixed(2)} s: ${(of('plain sleeps') / of('sleeps')).toFixed(1)}x`,
)
console.log(
  `5,000 tasks of 300 ms, 1,024 in flight, warm: ${of('in flight').toFixed(2)} s, ideal 1.5 s: ${(of('in flight') / 1.5).toFixed(2)}`,
)
console.log(`\n${describeMachine()}`)

/** Seconds. */
async function ours(tasks: TaskLike[], more: RunConfig = {}): Promise<number> {
  const began = performance.now()
  const responses = await Runners.runTask(tasks, { ...config, ...more })
  for (const { success } of responses.values()) if (!success) throw new Error('a task failed')
  return (performance.now() - began) / 1000
}

async function plainRay(): Promise<{ tasks: number; calls: number; sleeps: number }> {
  const script = fileURLToPath(new URL('ray_plain.py', import.meta.url))
  const env = { ...process.env, BENCH_RAY_ADDRESS: address, RAY_AUTH_MODE: 'token', RAY_AUTH_TOKEN_PATH: tokenFile }
  const { stdout } = await promisify(execFile)(python, [script, '2000', '5000', String(SLEEPS)], { env })
  return JSON.parse(stdout.trim().split('\n').at(-1)!)
}
