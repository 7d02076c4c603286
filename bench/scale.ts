import { randomUUID } from 'node:crypto'
import type { RuntimeEngine } from '../src/engines/engine.ts'
import { Dispatcher } from '../src/executor/dispatcher.ts'
import type { ReadyTask, TaskSource } from '../src/executor/source.ts'
import { describeMachine } from './machine.ts'
import { SimulatedEngine } from './simulated-engine.ts'

/**
 * How the executor's own cost grows: it is driven over simulated links, whose workers answer without doing anything, so
 * what is measured is the queue, the leases, the codec and the responses. CPU microseconds per task of this process.
 *
 *   node bench/scale.ts [--rounds N]
 */
const ROUNDS = process.argv.includes('--rounds') ? Number(process.argv[process.argv.indexOf('--rounds') + 1]) : 5
const IN_FLIGHT = 100_000

interface Setting {
  readonly workers: number
  readonly tasks: number
}
const BY_WORKERS: Setting[] = [10, 100, 1000].map((workers) => ({ workers, tasks: 1_000_000 }))
const BY_TASKS: Setting[] = [10_000, 100_000, 1_000_000].map((tasks) => ({ workers: 100, tasks }))
const nameOf = ({ workers, tasks }: Setting) => `${workers} workers, ${tasks} tasks`

const agent = {
  name: 'noop',
  params: undefined,
  ref: { name: 'noop', module: 'file:///simulated.js', fingerprint: undefined },
} as unknown as ReadyTask['task']['agent']
const measured = new Map<string, number[]>()

// One round to warm up, then all settings in turn, several times: a slow minute of the machine hits all of them.
for (let round = 0; round <= ROUNDS; round++) {
  for (const setting of [...BY_WORKERS, ...BY_TASKS]) {
    const cost = await measure(setting)
    if (round === 0) continue
    const name = nameOf(setting)
    measured.set(name, [...(measured.get(name) ?? []), cost])
  }
  process.stderr.write(`round ${round} of ${ROUNDS} done\n`)
}

const median = (setting: Setting) => {
  const all = measured.get(nameOf(setting))!.toSorted((a, b) => a - b)
  return all[all.length >> 1]!
}
console.log('| workers | tasks | in flight (at most) | CPU us per task |\n|---|---|---|---|')
for (const setting of [...BY_WORKERS, ...BY_TASKS.filter(({ tasks }) => tasks !== 1_000_000)])
  console.log(
    `| ${setting.workers} | ${setting.tasks} | ${Math.min(setting.tasks, IN_FLIGHT)} | ${median(setting).toFixed(2)} |`,
  )
console.log(`\n1,000 workers / 10 workers: ${(median(BY_WORKERS[2]!) / median(BY_WORKERS[0]!)).toFixed(2)}`)
console.log(`1,000,000 tasks / 10,000 tasks: ${(median(BY_TASKS[2]!) / median(BY_TASKS[0]!)).toFixed(2)}`)
console.log(`\n${describeMachine()}`)

async function measure({ workers, tasks }: Setting): Promise<number> {
  const engine = new SimulatedEngine()
  const dispatcher = makeDispatcher(engine, workers)
  await runThrough(dispatcher, Math.min(tasks, IN_FLIGHT))
  // Small counts are run several times, so that each measurement is long enough to mean something.
  const times = Math.max(1, Math.round(300_000 / tasks))
  const before = process.cpuUsage()
  let peak = 0
  for (let time = 0; time < times; time++) {
    await runThrough(dispatcher, tasks)
    peak = Math.max(peak, engine.takePeak())
  }
  const { user, system } = process.cpuUsage(before)
  await dispatcher.shutdown()
  const wanted = Math.min(tasks, IN_FLIGHT)
  if (peak < wanted * 0.9) throw new Error(`only ${peak} of ${wanted} tasks were in flight`)
  return (user + system) / (tasks * times)
}

function makeDispatcher(engine: RuntimeEngine, workers: number): Dispatcher {
  return new Dispatcher({
    engine,
    workerNum: workers,
    settings: {
      concurrency: IN_FLIGHT / workers,
      recycleAfterTasks: undefined,
      recycleAboveMb: undefined,
      withheldEnv: [],
    },
    placement: {
      workerEntry: '',
      execArgv: [],
      cwd: '.',
      env: {},
      output: 'drop',
      remote: { execArgv: [], env: {} },
    },
    entryScript: undefined,
    bundle: {},
    notice: (line) => process.stderr.write(`${line}\n`),
  })
}

function runThrough(dispatcher: Dispatcher, tasks: number): Promise<void> {
  let answered = 0
  return new Promise((resolve, reject) => {
    dispatcher.open(
      {
        runId: randomUUID(),
        seed: 0,
        timeoutMs: undefined,
        maxAttempts: 1,
        backoffMs: 1,
        backoffMaxMs: 1,
        deadlineMs: undefined,
        signal: undefined,
        showLogs: false,
        speculate: false,
        keepSteps: true,
        recorded: false,
        budget: undefined,
        services: undefined,
      },
      countingSource(tasks),
      {
        response: () => void answered++,
        full: () => false,
        end: (error) =>
          error || answered !== tasks ? reject(error ?? new Error(`${answered} of ${tasks} answered`)) : resolve(),
      },
    )
  })
}

function countingSource(tasks: number): TaskSource {
  let index = 0
  return {
    open: () => {},
    close: () => [],
    pull: () =>
      index === tasks
        ? 'end'
        : { index, id: `t${index}`, task: { input: { id: index++, text: 'a small input' }, agent } },
  }
}
