import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { Runners } from 'manyworlds'
import { afterAll, expect, it } from 'vitest'
import { childOf, exits, manyValues, picky } from '../agents/askers.ts'
import { query, storeFolder } from '../store/store-folder.ts'

/** Answers that count: to which run of a task they belong, and to which they do not. */

afterAll(() => Runners.shutdown())

/** A service whose answers count, and how often it was asked. */
function billing(answer: (nth: number) => unknown) {
  const asked: unknown[] = []
  const bill = {
    durable: true,
    answer: (question: unknown) => {
      asked.push(question)
      return answer(asked.length)
    },
  }
  return { asked, bill }
}

it('a task that failed and is tried again on request asks anew', async () => {
  const { store, file } = storeFolder()
  const task = () => picky.task(null, { id: 'p' })
  const first = billing(() => 'bad')
  const failed = await Runners.runTask(task(), { store, runId: 'r', services: { bill: first.bill } })
  expect(failed.status).toBe('failed')
  const second = billing(() => 'good')
  const config = { store, resume: 'r', retryFailed: true, services: { bill: second.bill } }
  expect((await Runners.runTask(task(), config)).answer).toBe('good')
  expect(second.asked).toEqual(['x'])
  expect(query(file('r'), 'SELECT attempt, value FROM answers')).toEqual([{ attempt: 1, value: '"good"' }])
})

it('a task that was cancelled goes on with the answers it had, whatever they are', async () => {
  const { store } = storeFolder()
  const values = [undefined, null, Number.NaN, { text: 'x'.repeat(500_000) }, new Map([[1, 2]]), new Uint8Array(9)]
  const first = billing((nth) => values[nth - 1])
  const reached = Promise.withResolvers<void>()
  const abort = new AbortController()
  const gate = () => {
    reached.resolve()
    return new Promise(() => {})
  }
  const task = () => manyValues.task(values.length, { id: 'v' })
  const run = Runners.runTask(task(), { store, runId: 'r', signal: abort.signal, services: { bill: first.bill, gate } })
  await reached.promise
  abort.abort()
  expect((await run).status).toBe('cancelled')
  const second = billing(() => 'another')
  const resumed = await Runners.runTask(task(), {
    store,
    resume: 'r',
    services: { bill: second.bill, gate: () => 'open' },
  })
  expect(second.asked).toEqual([])
  expect(resumed.answer).toEqual(values)
})

it('a sub-task that is another the next time has no answers of the first', async () => {
  const { store } = storeFolder()
  let name = 'one'
  const first = billing((nth) => `${name} ${nth}`)
  const reached = Promise.withResolvers<void>()
  const abort = new AbortController()
  const gate = () => {
    reached.resolve()
    return new Promise(() => {})
  }
  const which = () => name
  const task = () => childOf.task(null, { id: 'v' })
  const services = { bill: first.bill, which }
  const run = Runners.runTask(task(), { store, runId: 'r', signal: abort.signal, services: { ...services, gate } })
  await reached.promise
  abort.abort()
  await run
  name = 'two'
  const resumed = await Runners.runTask(task(), { store, resume: 'r', services: { ...services, gate: () => 'open' } })
  expect(resumed.answer).toBe('two 2')
})

it('an answer on its way to the disk is waited for: a rerun does not ask again', async () => {
  const { store, file } = storeFolder()
  const { asked, bill } = billing((nth) => `bill ${nth}`)
  const leave = Promise.withResolvers<void>()
  let starts = 0
  let disk: DatabaseSync | undefined
  const gate = () => {
    if (++starts > 1) return
    // From here on nothing can be committed.
    disk = new DatabaseSync(file('r'), { timeout: 30_000 })
    // Waits for a commit that is under way, in the thread that writes.
    disk.exec('BEGIN IMMEDIATE')
  }
  const run = Runners.runTask([manyValues.task(1, { id: 'pays' }), exits.task(null, { id: 'exits' })], {
    store,
    runId: 'r',
    workerNum: 1,
    concurrency: 2,
    services: { bill, gate, wait: () => leave.promise },
  })
  await expect.poll(() => asked.length, { timeout: 25_000 }).toBe(1)
  leave.resolve()
  // Its worker is gone, and it runs again.
  await expect.poll(() => starts, { timeout: 25_000 }).toBe(2)
  await sleep(200)
  disk!.exec('COMMIT')
  disk!.close()
  const responses = await run
  expect(responses.get('exits')!.error!.code).toBe('PROCESS_EXIT')
  expect(responses.get('pays')).toMatchObject({ answer: ['bill 1'], attempts: 1 })
  expect(asked).toHaveLength(1)
})
