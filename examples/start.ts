// Trains an agent to use tools, with a worker killed on the way, and looks whether it really learned: `npm start`.
import { relative } from 'node:path'
import { Runners } from 'manyworlds'
import {
  DistributedTrainingPipeline,
  type EpochReport,
  type PipelineOptions,
  type TestReport,
  type TrainingObserver,
  type TrainingStart,
} from 'manyworlds/train'
import { clerk, slowClerk } from './start/clerks.ts'
import { LiveCurve } from './start/curve.ts'
import { Facts } from './start/facts.ts'
import { deskTasks } from './tool-desk/desk.ts'

const UPDATES = 128
const KILL_IN = 64

const inputs = (part: 'train' | 'held-out', count: number) =>
  deskTasks({ part, count, seed: 1 }).map((input) => ({ input }))

const settings = {
  // The test has operations that training never sees together.
  tasks: { train: inputs('train', 2048), test: inputs('held-out', 500) },
  algorithm: { advantages: { name: 'grpo' }, loss: { name: 'clip' }, lr: 0.1 },
  ...{ tasksPerUpdate: 16, rollouts: 8, tasksPerEpoch: 16 * UPDATES, seed: 1 },
  ...{ workerNum: 4, concurrency: 32 },
} as const satisfies Partial<PipelineOptions>

const curve = new LiveCurve(UPDATES)
let facts: Facts | undefined
let file = ''
let killed: string | undefined

console.log('An agent learns to use tools that take 2 to 10 ms a call: 4 worker processes, 128 episodes at once.')
// What is shown below is read from the store, so there must be one.
const store = process.env.MANYWORLDS_STORE === 'off' ? { store: '.manyworlds/runs' } : {}
const learned = await train({ agent: slowClerk, progress: watch, ...store })
curve.end()

// To see that it is learning that helps, and that neither latency nor the kill changed anything.
curve.say('without learning; with shuffled rewards; undisturbed and without latency')
const [off, shuffled, undisturbed] = await Promise.all([
  train({ agent: clerk, store: false, control: 'off', tasksPerEpoch: 16 * 8 }),
  train({ agent: clerk, store: false, control: 'shuffled' }),
  train({ agent: clerk, store: false, evaluate: false }),
])
curve.say('')
await Runners.shutdown()

const { rerun, lost, twice } = facts!.episodes()
const { own, wall } = facts!.collection()
const shown = facts!.beforeAndAfter(learned.version)
facts!.close()
const same = learned.digest === undisturbed.digest
console.log(`
500 test tasks x 4, of kinds that training never saw, with 95 % intervals:
  learning          ${interval(learned.test)}   before: ${interval(learned.test?.before)}
  learning off      ${interval(off.test)}
  shuffled rewards  ${interval(shuffled.test)}
One of them, before and after: ${shown?.task}
  ${shown?.before}: wrong
  ${shown?.after}: right

SIGKILL of ${killed ?? 'no worker'} in update ${KILL_IN} → ${rerun} rerun, ${lost} lost, ${twice} twice
digest    ${learned.digest.slice(0, 16)}… of ${learned.updates} updates, ${same ? 'the same' : 'NOT THE SAME'} when undisturbed and without latency
speed-up  ${(own / wall).toFixed(0)}x: ${own.toFixed(0)} s of episodes were collected in ${wall.toFixed(1)} s
store     ${relative('', file)}
next      npx manyworlds show ${learned.id}`)
const isFine = same && lost === 0 && twice === 0 && learned.test!.success!.low > off.test!.success!.high
if (!isFine) process.exitCode = 1

async function train(options: Omit<PipelineOptions, 'tasks'>): Promise<EpochReport> {
  await using pipeline = new DistributedTrainingPipeline({ ...settings, ...options })
  let last: EpochReport | undefined
  for await (const epoch of pipeline.train({ epochs: 1 })) last = epoch
  return last!
}

/** Draws the curve, and kills a worker in the middle of an update. */
function watch(start: TrainingStart): Partial<TrainingObserver> {
  file = start.file!
  facts = new Facts(file, start.id)
  let current = ''
  return {
    run: (what) => {
      current = what
    },
    // The first one of this update is done, and most others are going on.
    episode: () => {
      if (current === `update ${KILL_IN}` && killed === undefined) kill()
    },
    update: ({ report }) => curve.add(report.successRate ?? 0),
  }
}

function kill(): void {
  const worker = facts!.worker(KILL_IN - 1)
  if (worker === undefined) return
  process.kill(worker.pid, 'SIGKILL')
  killed = `worker ${worker.id} (pid ${worker.pid})`
}

function interval(figures: Pick<TestReport, 'success'> | null | undefined): string {
  if (!figures?.success) return 'nothing was judged'
  const { value, low, high } = figures.success
  const percent = (share: number) => (100 * share).toFixed(1)
  return `${percent(value).padStart(5)} % [${percent(low)}, ${percent(high)}]`
}
