import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeEach, expect, test } from 'vitest'
import { type RunConfig, Runners, type TaskOptions } from '../../dist/index.js'
import { type Straggling, straggling } from '../agents/stragglers.ts'

/** `speculate`: a task that takes too long is started a second time, and the first answer counts. */

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'mw-stragglers-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))
afterAll(() => Runners.shutdown())

const ledger = (name = 'slow') => (existsSync(join(folder, name)) ? readFileSync(join(folder, name), 'utf8') : '')
const starts = (name = 'slow') => ledger(name).match(/start/g)?.length ?? 0
/** Until the slow one was started a second time, which is half a second after the first at the earliest. */
async function untilTwice(): Promise<void> {
  await expect.poll(() => starts(), { timeout: 30_000, interval: 50 }).toBe(2)
}

/** Nine that are quick, and one that is slow. */
async function run(slow: Omit<Straggling, 'file'>, config: RunConfig = {}, options: TaskOptions = {}) {
  const others = Array.from({ length: 9 }, (_, i) =>
    straggling.task({ file: join(folder, `other-${i}`), ms: [20, 20] }, { id: `other-${i}` }),
  )
  const task = straggling.task({ file: join(folder, 'slow'), ...slow }, { id: 'slow', ...options })
  const responses = await Runners.runTask([task, ...others], {
    workerNum: 3,
    concurrency: 4,
    speculate: true,
    ...config,
  })
  // A worker that the machine holds up for half a second makes a straggler of any task.
  for (const { id, answer } of responses.values())
    if (id !== 'slow') expect(answer, id).toBeOneOf(starts(id) === 1 ? ['first'] : ['first', 'second'])
  return responses.get('slow')!
}

test('the second start answers first: its answer, steps and lines are the ones', async () => {
  const slow = await run({ ms: [30_000, 100] })
  expect(slow).toMatchObject({ answer: 'second', attempts: 1, logs: ['second'] })
  expect(slow.trajectory.map(({ action }) => action)).toEqual(['second'])
  expect(starts()).toBe(2)
  // Whoever is slower is told to give up.
  await expect.poll(() => ledger()).toContain('given up first')
})

test('the first start answers first all the same', async () => {
  const slow = await run({ ms: [4000, 30_000] })
  expect(slow).toMatchObject({ answer: 'first', attempts: 1, logs: ['first'] })
  expect(slow.trajectory.map(({ action }) => action)).toEqual(['first'])
  await expect.poll(() => ledger()).toContain('given up second')
})

test('without the option, and with rerun: never, nothing is started twice', async () => {
  expect(await run({ ms: [1500, 10] }, { speculate: false })).toMatchObject({ answer: 'first' })
  expect(starts()).toBe(1)
  for (const name of readdirSync(folder)) rmSync(join(folder, name))
  expect(await run({ ms: [1500, 10] }, {}, { rerun: 'never' })).toMatchObject({ answer: 'first' })
  expect(starts()).toBe(1)
})

test('the worker of the first dies while the second runs: nobody is charged', async () => {
  const slow = await run({ ms: [4000, 4000], end: 'die' }, { maxAttempts: 3 })
  expect(slow).toMatchObject({ answer: 'second', attempts: 1 })
})

test('what the first one throws is what it came to', async () => {
  const slow = await run({ ms: [1500, 30_000], end: 'throw' })
  expect(slow).toMatchObject({ status: 'failed', attempts: 1 })
  expect(slow.error!.message).toBe('from the first')
})

test('a task that asks for sub-tasks runs in one place', async () => {
  const slow = await run({ ms: [1500, 10], subTasks: true })
  expect(slow).toMatchObject({ answer: 'first', attempts: 1 })
})

test('a task that has asked for an answer that counts runs in one place', async () => {
  const bill = { durable: true, answer: () => 'paid' }
  expect(await run({ ms: [1500, 10], asks: 'bill' }, { services: { bill } })).toMatchObject({ answer: 'first' })
  expect(starts()).toBe(1)
})

test('a task that waits for the driver is no straggler, unless its clock runs', async () => {
  const services = { slow: () => new Promise((resolve) => setTimeout(resolve, 2000)) }
  expect(await run({ ms: [10, 10], asks: 'slow' }, { services })).toMatchObject({ answer: 'first' })
  expect(starts()).toBe(1)
  for (const name of readdirSync(folder)) rmSync(join(folder, name))
  // It gets no answer before it was started again.
  const slow = await run({ ms: [10, 10], asks: 'twice', clock: 'runs' }, { services: { twice: untilTwice } })
  expect([slow.status, starts()]).toEqual(['success', 2])
})

test('cancelling ends both', async () => {
  const stop = new AbortController()
  const running = run({ ms: [60_000, 60_000] }, { signal: stop.signal })
  await untilTwice()
  stop.abort()
  expect((await running).status).toBe('cancelled')
  await expect.poll(() => ledger()).toContain('given up first')
  await expect.poll(() => ledger()).toContain('given up second')
})
