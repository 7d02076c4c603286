import { type EngineEvents, LocalRuntime, type Placement, Runners, type WorkerExit, type WorkerLink } from 'manyworlds'
import { RunFile } from 'manyworlds/runs'
import { afterAll, expect, it, onTestFinished } from 'vitest'
import { type AttemptRow, ROW, type TaskRow } from '../../src/store/messages.ts'
import { RunWriter } from '../../src/store/run-writer.ts'
import { ROLE } from '../../src/store/schema.ts'
import { StoreDb } from '../../src/store/store-db.ts'
import { ledger } from '../agents/ledger.ts'
import { pid } from '../agents/workers.ts'
import { query, storeFolder } from './store-folder.ts'

afterAll(() => Runners.shutdown())

/** Gives its first worker up for lost when the task has begun, as a network would; the worker works on, and is heard. */
class LossyRuntime extends LocalRuntime {
  static lose = () => {}

  override start(placement: Placement, events: EngineEvents, signal: AbortSignal): Promise<void> {
    let first = true
    const link = (real: WorkerLink) => {
      if (!first) return events.link(real)
      first = false
      const { promise: closed, resolve } = Promise.withResolvers<WorkerExit>()
      void real.closed.then(resolve)
      LossyRuntime.lose = () => resolve({ code: null, signal: null, reason: 'lost' })
      events.link({
        id: real.id,
        generation: real.generation,
        info: real.info,
        closed,
        send: (frame) => real.send(frame),
        onDrain: (listener) => real.onDrain(listener),
        onFrame: (listener) => real.onFrame(listener),
        pause: () => real.pause(),
        resume: () => real.resume(),
        kill: () => real.kill(),
      })
    }
    return super.start(placement, { ...events, link }, signal)
  }
}

it('an answer that comes after its worker was given up is stored as superseded, and does not count', {
  timeout: 120_000,
}, async () => {
  const { store, ledger: path, ran } = storeFolder()
  const pool = { cls: LossyRuntime, workerNum: 2, concurrency: 1 }
  // Both workers are there: both tasks begin at once, and the worker that is lost has one of them.
  const used = async () => {
    const responses = await Runners.runTask([pid.task(100), pid.task(100)], { ...pool, store: false })
    return new Set([...responses.values()].map(({ answer }) => answer)).size
  }
  await expect.poll(used, { timeout: 30_000 }).toBe(2)
  const config = { ...pool, store, runId: 'r', maxAttempts: 2, backoffMs: 1 }
  const running = Runners.runTask(
    [
      ledger.task({ ledger: path, ms: 3000 }, { id: 'twice' }),
      ledger.task({ ledger: path, ms: 3000 }, { id: 'clock' }),
    ],
    config,
  )
  // One in each worker.
  await expect.poll(() => ran(), { interval: 20 }).toHaveLength(2)
  LossyRuntime.lose()
  const responses = await running
  expect([...responses.values()].every(({ success }) => success)).toBe(true)
  expect(ran().filter((id) => id === 'twice').length + ran().filter((id) => id === 'clock').length).toBeGreaterThan(2)
  using run = RunFile.open('r', { store })
  const read = () => ['twice', 'clock'].flatMap((id) => run.task(id)!.attempts)
  const late = () => read().filter(({ role, status }) => role === 'superseded' && status === 'success').length
  await expect.poll(late).toBeGreaterThan(0)
  const attempts = read()
  expect(attempts.filter(({ role }) => role === 'final')).toHaveLength(2)
  for (const { trajectory, status } of attempts)
    if (status === 'success') expect(trajectory).toMatchObject([{ action: 'wrote' }])
  expect(new Set(attempts.map(({ worker }) => worker!.pid)).size).toBeGreaterThan(1)
  expect(run.overview().counts).toMatchObject({ success: 2 })
})

it('steps that come after the attempt of a cancelled task was stored are dropped, and the run goes on', () => {
  const { file } = storeFolder()
  const store = StoreDb.open(file('r'), true)
  onTestFinished(() => store.close(false))
  const header = { runId: 'r', seed: 0, sequenceDependent: false, manyworlds: '0', script: null }
  const { writer } = RunWriter.open(
    store,
    { path: file('r'), shared: true, header, mode: 'start', durability: 'normal', keep: undefined },
    new Set(),
  )
  writer.write(
    [
      [ROW.agent, 1, 'a', 'm', null, null],
      ...[1, 2].map((task): TaskRow => [ROW.task, task, `t${task}`, task, 0, 0, 1, '1', null, null, null, null, null]),
      [ROW.start, 1, 1, 1, null, Date.now()],
      [ROW.steps, 1, 0, [[0, '{"action":"first"}']]],
    ],
    { pid: 1, host: 'h', node: 'v24', config: '{}', total: 2 },
  )
  const ended = (task: number, status: 'cancelled' | 'success', start: number): AttemptRow => [
    ...([ROW.attempt, task, false, ROLE.final, 1, Date.now(), status, 0, 0, 0, null, null] as const),
    ...([null, null, null, null, start, null, null] as const),
  ]
  writer.write([ended(1, 'cancelled', 1)], undefined)
  // Its node is back and delivers the steps that it had recorded, beside the answer of another task.
  writer.write([[ROW.steps, 1, 1, [[9, '{"action":"late"}']]], ended(2, 'success', 0)], undefined)
  expect(query(file('r'), 'SELECT id, status FROM responses ORDER BY id')).toEqual([
    { id: 't1', status: 'cancelled' },
    { id: 't2', status: 'success' },
  ])
  expect(query(file('r'), 'SELECT action FROM steps')).toEqual([{ action: '"first"' }])
})
