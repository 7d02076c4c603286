import { mkdirSync } from 'node:fs'
import { hostname } from 'node:os'
import { parseArgs } from 'node:util'
import { ownPackage } from '../../src/own-package.ts'
import { seeded } from '../../src/random.ts'
import { keyOf } from '../../src/store/keys.ts'
import { ROW, type Row } from '../../src/store/messages.ts'
import { sharedStore } from '../../src/store/run-path.ts'
import { RunWriter } from '../../src/store/run-writer.ts'
import { ROLE } from '../../src/store/schema.ts'
import { StoreDb } from '../../src/store/store-db.ts'
import { encode } from '../../src/store/values.ts'
import type { TaskStatus } from '../../src/task.ts'
import { ListMemory } from '../../src/trajectory/list-memory.ts'
import { packStep } from '../../src/trajectory/packed-step.ts'
import { totalUsage } from '../../src/trajectory/usage.ts'
import { conversation, episode, notes, pick, sentence } from './made-steps.ts'
import { type PlannedAttempt, planAttempts, WORKERS } from './planned-attempts.ts'

/**
 * Makes a store with one run of many tasks, as a run would have written it: several agents and workers, failures, retries, grades,
 * episodes, rollouts, sub-tasks, logs, and steps of all kinds.
 *
 *   node bench/view/make-store.ts [--tasks 100000] [--steps 10] [--run made] [--seed 1] [--state finished|died] FOLDER
 */
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    tasks: { type: 'string', default: '1000' },
    steps: { type: 'string', default: '10' },
    run: { type: 'string', default: 'made' },
    seed: { type: 'string', default: '1' },
    /** `died`: the last tasks have no response, as after a driver that was killed. */
    state: { type: 'string', default: 'finished' },
  },
})
const [folder] = positionals
if (folder === undefined) throw new Error('give a folder')
const tasks = Number(values.tasks)
const stepCount = Number(values.steps)
const seed = Number(values.seed)
const random = seeded(seed)
const BATCH_ROWS = 5000
/** How many tasks are read ahead of those that run. */
const AHEAD = 500
const ROLLOUTS = 4

const AGENTS = ['support-desk', 'maze-walker', 'summarizer'] as const
type AgentName = (typeof AGENTS)[number]
/** All rollouts of a task have the same agent. */
const agentOf = (task: number): AgentName => {
  const part = (Math.ceil(task / ROLLOUTS) * 7919) % 10
  return part < 4 ? 'support-desk' : part < 8 ? 'maze-walker' : 'summarizer'
}

mkdirSync(folder, { recursive: true })
const began = performance.now()
const path = sharedStore(folder)
const store = StoreDb.open(path, true)
const script = 'file:///home/ada/desk/run.ts'
const header = { runId: values.run, seed, sequenceDependent: false, manyworlds: ownPackage.version, script }
const request = { path, shared: true, header, mode: 'start', durability: 'normal', keep: undefined } as const
const { writer } = RunWriter.open(store, request, new Set())
const config = JSON.stringify({ engineName: 'local', workerNum: WORKERS, concurrency: 8, maxAttempts: 2 })
const session = { pid: process.pid, host: hostname(), node: process.version, config, total: tasks }
const run = writer.write([], session)!.run

let rows: Row[] = []
const add = (...more: Row[]) => {
  rows.push(...more)
  if (rows.length < BATCH_ROWS) return
  writer.write(rows, undefined)
  rows = []
}

const from = Date.now() - 3_600_000
for (const [index, name] of AGENTS.entries()) add([ROW.agent, index + 1, name, `${script.slice(7)}`, null, null])
for (let worker = 1; worker <= WORKERS; worker++)
  add([ROW.worker, worker, `w${worker}`, `node-${1 + ((worker - 1) % 3)}`, 4000 + worker, from - 300 + 20 * worker])

const planned = planAttempts(tasks, from, random)
const kept = values.state === 'died' ? Math.floor(planned.length * 0.9) : planned.length
let read = 0
let nextTask = tasks + 1
let starts = 0
let grades = 0
for (const [index, attempt] of planned.entries()) {
  for (const end = Math.min(tasks, attempt.task + AHEAD); read < end; ) addTask(++read)
  if (index < kept) addAttempt(attempt)
  else if (index < kept + WORKERS && attempt.isFinal)
    add([ROW.start, ++starts, attempt.task, attempt.attempt, attempt.worker, attempt.startedAt])
}
writer.write([...rows, [ROW.allRead]], undefined)
if (values.state !== 'died') writer.end({ how: 'finished', error: null })
const last = planned[kept - 1]?.endedAt ?? from
store.statement('UPDATE _run SET created_at = ? WHERE run = ?').run(from - 500, run)
store
  .statement(
    'UPDATE _sessions SET started_at = ?, seen_at = ?, ended_at = iif(ended_at IS NULL, NULL, ?) WHERE epoch = ?',
  )
  .run(from - 500, last, last + 200, keyOf(run, 1))
store.close(false)
console.log(
  `${path}: run ${values.run} with ${tasks} tasks, ${planned.length} attempts and about ${planned.length * stepCount} steps, made in ${((performance.now() - began) / 1000).toFixed(1)} s`,
)

function addTask(task: number): void {
  const number = Math.ceil(task / ROLLOUTS)
  const rollout = 1 + ((task - 1) % ROLLOUTS)
  const group = `question-${String(number).padStart(6, '0')}`
  const agent = agentOf(task)
  const input =
    agent === 'maze-walker' ? { level: number % 9, seed: number } : { question: sentence(8, seeded(number)), number }
  const info = { metadata: { level: number % 3, topic: pick(['billing', 'stock', 'routes'], seeded(number)) } }
  const id = rollout === 1 ? group : `${group}@${rollout}`
  const key = AGENTS.indexOf(agent) + 1
  add([ROW.task, task, id, task - 1, 0, 0, key, encode(input), encode(info), null, null, group, rollout])
}

function addAttempt(planned: PlannedAttempt): void {
  const { task, attempt, isFinal, worker, startedAt, endedAt, queuedMs, status } = planned
  const agent = agentOf(task)
  const ms = endedAt - startedAt
  const version = Math.floor((20 * task) / tasks)
  const steps = stepsOf(agent, status === 'success' ? stepCount : Math.ceil(random() * stepCount), ms, version, task)
  const lists = new ListMemory()
  const packed = steps.map((step) => packStep(step, () => lists))
  const start = packed.length > 0 ? ++starts : 0
  if (start > 0) add([ROW.start, start, task, attempt, worker, startedAt], [ROW.steps, start, 0, packed])
  const usage = totalUsage(steps)
  const error = status === 'success' ? undefined : errorOf(status, random)
  const reward = agent === 'maze-walker' ? Number(random() < 0.55 + version / 60) : null
  const answer = agent === 'maze-walker' ? { room: task % 64, reached: reward === 1 } : sentence(9, random)
  const logs = random() < 0.1 ? [`started task ${task}`, sentence(6, random)] : undefined
  add([
    ...([ROW.attempt, task, false, isFinal ? ROLE.final : ROLE.retried, attempt, endedAt, status] as const),
    ...([Math.round(queuedMs * 1000), ms * 1000, agent === 'support-desk' ? ms * 100 : 0, worker] as const),
    ...([error?.code ?? null, error ? null : encode(answer), error ? encode(error) : null] as const),
    ...([logs ? JSON.stringify(logs) : null, Object.keys(usage).length > 0 ? usage : null, start] as const),
    reward !== null && status === 'success'
      ? { ending: 'terminated', reward, success: reward === 1 ? 1 : 0, finalObservation: null }
      : null,
    null,
  ])
  if (!isFinal || status !== 'success') return
  if (agent === 'support-desk') addGrade(task, attempt, endedAt)
  if (agent === 'summarizer' && task % (50 * ROLLOUTS) === 1) addSubTasks(task, attempt, worker, endedAt)
}

function stepsOf(agent: AgentName, count: number, ms: number, version: number, task: number) {
  const options = { count, ms, version, random, tokens: task % 4 === 0 }
  if (agent === 'maze-walker') return episode(options)
  return agent === 'support-desk' ? conversation(options) : notes(options)
}

function addGrade(task: number, attempt: number, at: number): void {
  const reward = Math.round(random() * 4) / 4
  const success = reward >= 0.75
  const grade = { reward, success, feedback: success ? 'correct' : 'wrong order', grader: { name: 'exact' } }
  add([ROW.grade, ++grades, task, attempt, at, reward, success ? 1 : 0, 'exact', encode(grade)])
}

function addSubTasks(parent: number, parentAttempt: number, worker: number, endedAt: number): void {
  for (const part of ['first', 'second']) {
    const task = nextTask++
    const number = Math.ceil(parent / ROLLOUTS)
    const rollout = 1 + ((parent - 1) % ROLLOUTS)
    const id = `question-${String(number).padStart(6, '0')}${rollout === 1 ? '' : `@${rollout}`}/${part}`
    const input = encode({ part })
    add(
      [ROW.task, task, id, null, parent, parentAttempt, 3, input, null, null, null, null, null],
      [
        ...([ROW.attempt, task, true, ROLE.final, 1, endedAt - 20, 'success', 0, 40_000, 0, worker, null] as const),
        ...([encode(sentence(5, random)), null, null, null, 0, null, null] as const),
      ],
    )
  }
}

function errorOf(status: Exclude<TaskStatus, 'success'>, draw: () => number) {
  const number = Math.floor(draw() * 1e6)
  switch (status) {
    case 'timeout':
      return { code: 'TASK_TIMEOUT', name: 'TaskError', message: `the task ran longer than ${3 + (number % 3)} s` }
    case 'crashed':
      return { code: 'WORKER_CRASHED', name: 'TaskError', message: `worker w${number % WORKERS} was killed (SIGKILL)` }
    case 'cancelled':
      return { code: 'TASK_CANCELLED', name: 'TaskError', message: 'the run was stopped' }
    default: {
      const message = pick(
        [
          `order ${number} not found`,
          `cannot read properties of undefined (reading 'total')`,
          `HTTP 502 from https://api.example.com/orders/${number}`,
          `invalid JSON at position ${number % 900}`,
          `connect ECONNREFUSED 10.0.0.${number % 250}:5432`,
          `assertion failed: ${number.toString(16)} is not a valid token`,
        ],
        draw,
      )
      const stack = `Error: ${message}\n    at answer (/home/ada/desk/run.ts:${number % 300}:11)`
      return { code: 'TASK_THREW', name: 'Error', message, stack }
    }
  }
}
