import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { DriverMessage } from '../../src/protocol/messages.ts'
import { ScriptedExecutor, type ScriptedWorker } from '../support/scripted-worker.ts'

/** Workers that live and hold tasks, but do not read what the driver sends, or whose words do not arrive. */

beforeEach(() => void vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] }))
afterEach(() => void vi.useRealTimers())

const turns = async (count: number) => {
  for (let n = 0; n < count; n++) await new Promise((resolve) => setImmediate(resolve))
}

/** Lets time pass in steps, so that the workers can answer in between. */
async function pass(seconds: number): Promise<void> {
  for (let s = 0; s < seconds; s++) {
    vi.advanceTimersByTime(1000)
    await turns(8)
  }
}

/** Runs `bad`, which makes its worker do what `deaf` does, and three others. */
function runBeside(timeoutMs: number | undefined, deaf: (message: DriverMessage, worker: ScriptedWorker) => void) {
  const lines: string[] = []
  const isDeaf = new WeakSet<ScriptedWorker>()
  const starts: string[] = []
  const executor = new ScriptedExecutor(
    (message, worker) => {
      if (isDeaf.has(worker)) return deaf(message, worker)
      if (message.type === 'ping') worker.say({ type: 'pong' })
      if (message.type === 'cancel') worker.say({ type: 'cancel-seen', lease: message.lease })
      if (message.type !== 'run') return
      for (const task of message.tasks) {
        const id = String(task[2])
        starts.push(id)
        if (message.careful) worker.say({ type: 'started', leases: [task[0]] })
        if (id === 'bad') isDeaf.add(worker)
        if (!isDeaf.has(worker)) worker.answer(task, 'done')
      }
    },
    { workers: 2, concurrency: 4, notice: (line) => lines.push(line) },
  )
  const limit = timeoutMs === undefined ? {} : { timeoutMs }
  const running = executor.run(['bad', 'a', 'b', 'c'].map((id) => ({ id, ...limit })))
  return { executor, running, lines, starts }
}

test('a worker that no longer answers is replaced once its tasks cannot be what blocks it', async () => {
  const { executor, running, lines, starts } = runBeside(20_000, () => {})
  await turns(20)
  await pass(30)
  expect(starts.filter((id) => id === 'bad')).toHaveLength(1)
  await pass(150)
  const responses = await running
  await executor.shutdown()
  expect([...responses].map(([id, { status }]) => [id, status])).toEqual(
    expect.arrayContaining([
      ['bad', 'crashed'],
      ['a', 'success'],
      ['b', 'success'],
      ['c', 'success'],
    ]),
  )
  const words = 'it has not answered the driver for 32 s (its tasks may block it for 20 s at most)'
  expect(responses.get('bad')!.error!.message).toBe(
    `the worker that ran this task ended (the driver ended it: ${words})`,
  )
  expect(lines[0]).toMatch(new RegExp(`^worker w[01]: ${words.replace(/[()]/g, '\\$&')}; it is replaced$`))
})

test('a worker that claims to prepare agents gets half an hour, not for ever', async () => {
  let said = false
  const { executor, running, starts } = runBeside(1000, (_message, worker) => {
    if (!said) worker.say({ type: 'preparing', agents: 1 })
    said = true
  })
  await turns(20)
  await pass(5)
  await pass(30 * 60)
  expect(starts.filter((id) => id === 'bad')).toHaveLength(1)
  await pass(180)
  expect((await running).get('bad')!.status).toBe('crashed')
  await executor.shutdown()
})

test('a task without a timeout may block its worker for as long as it likes', async () => {
  const { executor, running, starts, lines } = runBeside(undefined, () => {})
  await turns(20)
  await pass(3600)
  expect(lines).toEqual([
    expect.stringMatching(
      /^worker w[01] has not answered for 60 s: a task blocks its event loop, or has broken it; set `timeoutMs`/,
    ),
  ])
  expect(starts.filter((id) => id === 'bad')).toHaveLength(1)
  await executor.shutdown()
  await expect(running).rejects.toThrow('the executor was shut down')
})

test('a worker that answers is never replaced, however long its tasks take', async () => {
  const executor = new ScriptedExecutor((message, worker) => {
    if (message.type === 'ping') worker.say({ type: 'pong' })
    if (message.type === 'run') held.push([worker, message.tasks[0]!])
  })
  const held: [ScriptedWorker, Parameters<ScriptedWorker['answer']>[0]][] = []
  const running = executor.run([{ id: 'patient', timeoutMs: 10 }])
  await turns(20)
  await pass(600)
  expect(held).toHaveLength(1)
  held[0]![0].answer(held[0]![1], 'done')
  expect((await running).get('patient')!.status).toBe('success')
  await executor.shutdown()
})
