// 200 simulated agents: a few of them one after the other, then all at once, with a worker killed on the way.
import { appendFileSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { defineAgent, Runners } from 'manyworlds'

const TASKS = 200
const SAMPLE = 10
const WORKERS = 4
const KILL_AFTER = 60

/** Thinks and acts in three to six steps, 50 to 150 ms each, as an agent that waits for its model would. */
const agent = defineAgent({
  name: 'simulated',
  // Every start leaves a mark in this file: the only way to see reruns, which no attempt is charged for.
  params: { startsFile: '' },
  run: async (question: string, ctx) => {
    appendFileSync(ctx.params.startsFile, '.')
    const steps = 3 + Math.floor(ctx.random() * 4)
    let score = 0
    for (let step = 1; step <= steps; step++) {
      await sleep(50 + ctx.random() * 100, undefined, { signal: ctx.signal })
      const reward = ctx.random()
      score += reward / steps
      ctx.step({ action: `search ${question}`, observation: `page ${step}`, reward })
    }
    return { steps, score: Math.round(score * 100) }
  },
})

// Workers import this file too, to find the agent. They stop at the first run: what follows it happens only here.
const startsFile = join(tmpdir(), `many-agents-${process.pid}`)
const simulated = agent.withParams({ startsFile })
const tasks = Array.from({ length: TASKS }, (_, i) => simulated.task(`question ${i + 1}`, { id: `agent-${i + 1}` }))

await Runners.runTask(simulated.task('warm up', { id: 'warm-up' }), { workerNum: 1, concurrency: 1 })
console.log(`${SAMPLE} agents, one after the other ...`)
const began = performance.now()
const sample = await Runners.runTask(tasks.slice(0, SAMPLE), { workerNum: 1, concurrency: 1 })
const sequentialSeconds = seconds(began)

console.log(`${TASKS} agents, up to ${WORKERS} × 16 at once ...`)
const startsBefore = starts()
const began2 = performance.now()
const answers = new Map<string, unknown>()
let answeredTwice = 0
let succeeded = 0
let attempts = 0
let killed: string | undefined
for await (const response of Runners.streamTask(tasks, { workerNum: WORKERS, concurrency: 16 })) {
  if (answers.has(response.id)) answeredTwice++
  answers.set(response.id, response.answer)
  attempts += response.attempts
  if (response.success) succeeded++
  if (answers.size === KILL_AFTER && response.worker?.pid !== undefined) {
    process.kill(response.worker.pid, 'SIGKILL')
    killed = `worker ${response.worker.id} (pid ${response.worker.pid})`
  }
  showProgress(answers.size)
}
const parallelSeconds = seconds(began2)

const reruns = starts() - startsBefore - TASKS
const same = [...sample].every(([id, response]) => JSON.stringify(response.answer) === JSON.stringify(answers.get(id)))
const wouldTake = (sequentialSeconds / SAMPLE) * TASKS
console.log(`
${answers.size} of ${TASKS} tasks answered, ${answeredTwice === 0 ? 'each exactly once' : `${answeredTwice} MORE THAN ONCE`}; ${succeeded} succeeded
${killed ?? 'no worker'} was killed with SIGKILL after ${KILL_AFTER} answers
${TASKS + reruns} starts: ${reruns} tasks that were in that worker ran again; attempts charged: ${attempts}
the ${SAMPLE} sampled tasks gave ${same ? 'the same answers' : 'OTHER ANSWERS'} both times

one after the other: ${sequentialSeconds.toFixed(1)} s for ${SAMPLE}, so about ${wouldTake.toFixed(0)} s for ${TASKS} (extrapolated, not measured)
in parallel:         ${parallelSeconds.toFixed(1)} s for ${TASKS} (measured; start of the workers and the crash included)
speed-up:            about ${(wouldTake / parallelSeconds).toFixed(0)}x`)
rmSync(startsFile)
if (answers.size !== TASKS || answeredTwice > 0 || succeeded !== TASKS || !same) process.exitCode = 1

function starts(): number {
  return readFileSync(startsFile).length
}

function seconds(since: number): number {
  return (performance.now() - since) / 1000
}

function showProgress(done: number): void {
  const bar = '#'.repeat(Math.floor((done / TASKS) * 40)).padEnd(40, '.')
  const line = `  [${bar}] ${done}/${TASKS}${killed === undefined ? '' : `  (killed: ${killed})`}`
  if (process.stdout.isTTY) process.stdout.write(`\r${line}${done === TASKS ? '\n' : ''}`)
  else if (done % 50 === 0) console.log(line)
}
