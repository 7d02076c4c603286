import { expect, onTestFinished, test, vi } from 'vitest'
import { Budget } from '../../src/executor/budget.ts'
import { type DriverMessage, OUTCOME, type TaskItem } from '../../src/protocol/messages.ts'
import { pack } from '../../src/protocol/pack.ts'
import { SequenceSource } from '../../src/runners/ordered-sources.ts'
import { ArraySource } from '../../src/runners/sources.ts'
import { SCRIPTED_REF, ScriptedExecutor, type ScriptedWorker, scriptedAgent } from '../support/scripted-worker.ts'
import { SUB_TASKS_ASK } from '../support/sub-tasks-ask.ts'

/** What waits in the driver: how much of it there may be, to whom it belongs, and how it ends. */

const turns = async (count: number) => {
  for (let n = 0; n < count; n++) await new Promise((resolve) => setImmediate(resolve))
}

/** Reading must not go on without an end: then the test fails instead of hanging. */
const MOST_READ = 20_000

function* endless(read: { count: number }, task: (n: number) => Record<string, unknown> = () => ({})) {
  for (;;) {
    if (++read.count > MOST_READ) throw new Error(`${MOST_READ} tasks were read`)
    yield { id: `t${read.count}`, ...task(read.count) }
  }
}

const FAILED = pack({ code: 'TASK_THREW', name: 'Error', message: 'no', stack: undefined })
const CANCELLED = pack({ code: 'TASK_CANCELLED', name: 'AbortError', message: 'cancelled', stack: undefined })
const fail = (worker: ScriptedWorker, [lease]: TaskItem) =>
  worker.say({ type: 'done', records: [], outcomes: [[lease, OUTCOME.failed, FAILED, 1]] })

/** Acknowledges a cancellation as a worker does that has the task. */
function cancel(worker: ScriptedWorker, lease: number): void {
  worker.say({ type: 'cancel-seen', lease })
  worker.say({ type: 'done', records: [], outcomes: [[lease, OUTCOME.cancelled, CANCELLED, 0]] })
}

test('tasks that require a label are read as far as the workers have room, and go on as they end', async () => {
  const read = { count: 0 }
  const answered: string[] = []
  let ahead = 0
  const stop = new AbortController()
  const executor = new ScriptedExecutor(
    (message, worker) => {
      if (message.type === 'cancel') cancel(worker, message.lease)
      if (message.type !== 'run') return
      for (const task of message.tasks) {
        answered.push(worker.id)
        worker.answer(task, 'done')
      }
      ahead = Math.max(ahead, read.count - answered.length)
      if (answered.length > 10_000) stop.abort()
    },
    { workers: 4, labels: (id) => (id === 'w3' ? ['gpu'] : []) },
  )
  await executor.run(
    endless(read, () => ({ requires: ['gpu'] })),
    stop.signal,
  )
  await executor.shutdown()
  expect(new Set(answered)).toEqual(new Set(['w3']))
  // What the worker holds for quick tasks, and as much again that waits for it.
  expect(ahead).toBeLessThan(2.5 * 1024)
})

test('tasks whose label no worker has do not hang the driver, which says what they wait for', async () => {
  const read = { count: 0 }
  const lines: string[] = []
  const stop = new AbortController()
  const executor = new ScriptedExecutor(() => {}, { workers: 4, elastic: true, notice: (line) => lines.push(line) })
  const running = executor.run(
    endless(read, () => ({ requires: ['gpu'] })),
    stop.signal,
  )
  await expect.poll(() => lines.join()).toContain('wait for a worker with the labels gpu; no worker has them yet')
  await turns(100)
  expect(read.count).toBeLessThan(100)
  stop.abort()
  expect([...(await running).values()].map(({ status }) => status)).toEqual(Array(read.count).fill('cancelled'))
  await executor.shutdown()
})

test('tasks that cannot get their label are answered, and the event loop has its turns between them', async () => {
  const read = { count: 0 }
  const stop = new AbortController()
  const executor = new ScriptedExecutor(() => {}, { workers: 2 })
  setTimeout(() => stop.abort(), 100)
  const responses = await executor.run(
    endless(read, () => ({ requires: ['gpu'] })),
    stop.signal,
  )
  expect(responses.get('t1')!.error).toMatchObject({ code: 'REQUIRES_UNMET' })
  expect(responses.size).toBe(read.count)
  await executor.shutdown()
})

test('while the agent of one run loads, the tasks of another that end do not read more of it', async () => {
  const read = { count: 0 }
  const stop = new AbortController()
  const loaders: [ScriptedWorker, number][] = []
  const executor = new ScriptedExecutor((message, worker) => {
    if (message.type === 'agent' && message.ref.name === 'slow') {
      loaders.push([worker, message.key])
      return false
    }
    if (message.type === 'cancel') cancel(worker, message.lease)
    if (message.type === 'run') for (const task of message.tasks) worker.answer(task, 'done')
    return true
  })
  const slow = executor.run(
    endless(read, () => ({ agent: scriptedAgent('slow') })),
    stop.signal,
  )
  await executor.run(Array.from({ length: 2000 }, (_, n) => `busy${n}`))
  expect(read.count).toBeLessThan(1100)
  const before = read.count
  await executor.run(Array.from({ length: 2000 }, (_, n) => `busy${n}`))
  expect(read.count).toBeLessThan(before + 1100)
  for (const [worker, agent] of loaders) worker.say({ type: 'loaded', agent })
  await expect.poll(() => read.count).toBeGreaterThan(5000)
  stop.abort()
  await slow
  await executor.shutdown()
})

test('tasks behind a few whose agent loads slowly do not wait for it', async () => {
  const answered: string[] = []
  const executor = new ScriptedExecutor(
    (message, worker) => {
      if (message.type === 'agent' && message.ref.name === 'slow') {
        const loaded = () => worker.say({ type: 'loaded', agent: message.key })
        void expect
          .poll(() => answered.length)
          .toBe(50)
          .then(loaded)
        return false
      }
      if (message.type === 'run') for (const task of message.tasks) worker.answer(task, 'done')
      return true
    },
    { answered: (id) => answered.push(id) },
  )
  const quick = Array.from({ length: 50 }, (_, n) => `quick${n}`)
  await executor.run(['first'])
  answered.length = 0
  await executor.run([
    { id: 'slow1', agent: scriptedAgent('slow') },
    { id: 'slow2', agent: scriptedAgent('slow') },
    ...quick,
  ])
  expect(answered).toEqual([...quick, 'slow1', 'slow2'])
  await executor.shutdown()
})

/** Nothing else waits for so long. */
const LONG_MS = 1_000_000

test('each retry waits twice as long as the one before it, at most backoffMaxMs, less up to a half', async () => {
  const waits: number[] = []
  const { setTimeout } = globalThis
  const timers = vi.spyOn(globalThis, 'setTimeout').mockImplementation(((then: () => void, ms = 0) => {
    if (ms < LONG_MS / 2) return setTimeout(then, ms)
    waits.push(ms / LONG_MS)
    return setTimeout(then, 0)
  }) as typeof setTimeout)
  onTestFinished(() => timers.mockRestore())
  const receive = (message: DriverMessage, worker: ScriptedWorker) => {
    if (message.type === 'run') for (const task of message.tasks) fail(worker, task)
  }
  const backoff = { backoffMs: LONG_MS, backoffMaxMs: 4 * LONG_MS }
  const executor = new ScriptedExecutor(receive, { ...backoff, maxAttempts: 6 })
  expect((await executor.run(['fails'])).get('fails')).toMatchObject({ status: 'failed', attempts: 6 })
  await executor.shutdown()
  const most = [1, 2, 4, 4, 4]
  expect(waits).toHaveLength(most.length)
  for (const [retry, wait] of waits.entries()) {
    expect(wait).toBeGreaterThanOrEqual(most[retry]! / 2)
    expect(wait).toBeLessThanOrEqual(most[retry]!)
  }
})

const plain = { id: 'child', ref: SCRIPTED_REF, params: undefined, input: 'child', options: {} }
const askChild = (worker: ScriptedWorker, [lease]: TaskItem) =>
  worker.say({ ...SUB_TASKS_ASK, request: 1, lease, body: { ordinal: 0, tasks: [plain] } })

test('the sub-tasks of an attempt that failed are cancelled, and the run does not wait for them', async () => {
  const cancelled: number[] = []
  const children: number[] = []
  let parent: TaskItem
  const receive = (message: DriverMessage, worker: ScriptedWorker) => {
    if (message.type === 'cancel') {
      cancelled.push(message.lease)
      cancel(worker, message.lease)
    }
    if (message.type !== 'run') return
    for (const task of message.tasks) {
      if (task[3] === 'child') {
        children.push(task[0])
        fail(worker, parent)
      } else if (children.length > 0) worker.answer(task, 'second')
      else askChild(worker, (parent = task))
    }
  }
  const executor = new ScriptedExecutor(receive, { maxAttempts: 2 })
  const responses = await executor.run(['parent'])
  expect(responses.get('parent')).toMatchObject({ status: 'success', answer: 'second', attempts: 2 })
  expect(cancelled).toEqual(children)
  await executor.shutdown()
})

test('a sub-task that was cancelled and is then returned does not run again', async () => {
  let children = 0
  let parent: TaskItem
  const receive = (message: DriverMessage, worker: ScriptedWorker) => {
    // It gave the task back before the cancellation came.
    if (message.type === 'cancel') {
      worker.say({ type: 'returned', unstarted: [message.lease] })
      worker.say({ type: 'cancel-seen', lease: message.lease })
    }
    if (message.type !== 'run') return
    for (const task of message.tasks) {
      if (task[3] !== 'child') askChild(worker, (parent = task))
      else if (++children === 1) worker.answer(parent, 'done')
      else worker.answer(task, 'too late')
    }
  }
  const executor = new ScriptedExecutor(receive)
  expect((await executor.run(['parent'])).get('parent')).toMatchObject({ answer: 'done' })
  expect(children).toBe(1)
  await executor.shutdown()
})

test('tasks that fail or are lost after the budget is spent say so', async () => {
  const budget = new Budget({ maxTokens: 10 }, {})
  const items: TaskItem[] = []
  const receive = (message: DriverMessage, worker: ScriptedWorker) => {
    if (message.type !== 'run') return
    items.push(...message.tasks)
    if (items.length < 2) return void worker.say({ type: 'hungry' })
    budget.spend({ inputTokens: 10 }, 0)
    worker.say({ type: 'done', records: [[items[0]![0], [], ['a line']]], outcomes: [] })
    fail(worker, items[0]!)
    worker.die({ placeLost: true })
  }
  const executor = new ScriptedExecutor(receive, { maxAttempts: 3 })
  const responses = await executor.run(['fails', 'lost', 'unread'], undefined, budget)
  for (const id of ['fails', 'lost', 'unread'])
    expect(responses.get(id), id).toMatchObject({ status: 'cancelled', error: { code: 'RUN_BUDGET' } })
  await executor.shutdown()
})

test('a sequence that failed and is then stopped has every task: those it skipped, and the rest', () => {
  const agent = scriptedAgent('a')
  const items = Array.from({ length: 100 }, (_, index) => ({ index, id: `t${index}`, task: { input: index, agent } }))
  const source = new SequenceSource(new ArraySource(items))
  source.open(() => {})
  const pulled = [source.pull()]
  source.settled(0, { id: 't0', success: false, status: 'failed' } as never)
  for (let n = 0; n < 10; n++) pulled.push(source.pull())
  const all = [...pulled, ...source.close()]
  expect(all.map((item) => (item as { index: number }).index)).toEqual(Array.from({ length: 100 }, (_, n) => n))
  expect(source.pull()).toBe('end')
})
