import { afterAll, expect, test } from 'vitest'
import { Runners } from '../../dist/index.js'
import type { TaskItem } from '../../src/protocol/messages.ts'
import { unpack } from '../../src/protocol/pack.ts'
import { asksForLost, doubles, forgets } from '../agents/subtasks.ts'
import { runScripted, SCRIPTED_REF } from '../support/scripted-worker.ts'
import { SUB_TASKS_ASK } from '../support/sub-tasks-ask.ts'

/** What a worker may ask of the driver for a task that it holds, and what it gets for asking too much. */

const plain = { id: undefined, ref: SCRIPTED_REF, params: undefined, input: 'child', options: {} }

/** A worker asks for these. What it was told: how many responses there are, or the code and the message of a refusal. */
async function ask(tasks: readonly unknown[]): Promise<unknown> {
  let top: TaskItem
  const responses = await runScripted(['top'], (message, worker) => {
    if (message.type === 'answer') worker.answer(top, [message.ok, unpack(message.value)])
    if (message.type !== 'run') return
    for (const task of message.tasks) {
      if (task[3] !== 'top') worker.answer(task, 'done')
      else {
        top = task
        worker.say({ ...SUB_TASKS_ASK, request: 1, lease: task[0], body: { ordinal: 0, tasks } })
      }
    }
  })
  const [ok, value] = responses.get('top')!.answer as [boolean, { length: number }]
  return ok ? value.length : value
}

test('sub-tasks are run, and those of many at once too', async () => {
  expect(await ask([])).toBe(0)
  expect(await ask([plain, { ...plain, id: 'named' }])).toBe(2)
  expect(await ask(Array.from({ length: 20_000 }, () => plain))).toBe(20_000)
}, 60_000)

test('what a worker of ours would not ask for is refused, with a code', async () => {
  const bad: [unknown, string][] = [
    [{ ...plain, id: '' }, 'non-empty'],
    [{ ...plain, id: '#1' }, "begin with '#'"],
    [{ ...plain, id: 'x'.repeat(513) }, 'longer than 512'],
    [{ ...plain, id: '\ud800' }, 'surrogate'],
    [{ ...plain, options: { timeoutMs: 2 ** 31 } }, 'timeoutMs'],
  ]
  for (const [task, words] of bad)
    expect(await ask([plain, task])).toEqual({ code: 'TASK_INVALID', message: expect.stringContaining(words) })
  const twice = Array.from({ length: 50_000 }, () => ({ ...plain, id: 'same' }))
  expect(await ask(twice)).toMatchObject({ code: 'TASK_DUPLICATE_ID' })
  const many = Array.from({ length: 100_001 }, () => plain)
  expect(await ask(many)).toMatchObject({ code: 'SUBTASKS_TOO_MANY', message: expect.stringContaining('100001') })
}, 60_000)

test('a worker that speaks of an agent that it was not told of is not listened to', async () => {
  const failed = { type: 'load-failed', agent: 0, code: 'AGENT_NOT_FOUND', message: 'no', stack: undefined } as const
  const receive: Parameters<typeof runScripted>[1] = (message, worker) => {
    if (message.type === 'hello' && worker.id === 'w1') worker.say(failed)
    if (message.type === 'run') for (const task of message.tasks) worker.answer(task, 'done')
    if (message.type !== 'agent' || worker.id === 'w1') return undefined
    // The first takes its time, and the other says that it cannot be done.
    setTimeout(() => worker.say({ type: 'loaded', agent: message.key }), 100)
    return false
  }
  expect((await runScripted(['one'], receive, { workers: 2 })).get('one')).toMatchObject({ answer: 'done' })
})

afterAll(() => Runners.shutdown())

test('a sub-task whose agent cannot be loaded is the error of whoever asked for it, and the run goes on', async () => {
  const tasks = [asksForLost.task(1), ...Array.from({ length: 20 }, (_, n) => doubles.task(n)), asksForLost.task(2)]
  const responses = [...(await Runners.runTask(tasks, { workerNum: 2, store: false })).values()]
  expect(responses.map(({ answer, error }) => answer ?? error)).toEqual([
    ['AGENT_LOAD_FAILED', expect.stringContaining('not-there.ts')],
    ...Array.from({ length: 20 }, (_, n) => 2 * n),
    ['AGENT_LOAD_FAILED', expect.stringContaining('not-there.ts')],
  ])
}, 60_000)

test('a task that ends before its sub-task has begun is answered, also as the last of its run', async () => {
  for (let n = 0; n < 20; n++)
    expect(await Runners.runTask(forgets.task(n), { workerNum: 1, store: false })).toMatchObject({ answer: n })
}, 60_000)
