import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeEach, expect, test } from 'vitest'
import { type RunConfig, Runners, type TaskOptions } from '../dist/index.js'
import { type Straggling, straggling } from './agents/stragglers.ts'

/** `speculate`: a task that takes too long is started a second time, and the first answer counts. */

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'mw-stragglers-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))
afterAll(() => Runners.shutdown())

const ledger = () => readFileSync(join(folder, 'slow'), 'utf8')
const starts = () => ledger().match(/start/g)!.length

/** Nine that are quick, and one that is slow. */
async function run(slow: Omit<Straggling, 'file'>, config: RunConfig = {}, options: TaskOptions = {}) {
  const others = Array.from({ length: 9 }, (_, i) =>
    straggling.task({ file: join(folder, `other-${i}`), ms: [20, 20] }),
  )
  const task = straggling.task({ file: join(folder, 'slow'), ...slow }, { id: 'slow', ...options })
  const responses = await Runners.runTask([task, ...others], {
    workerNum: 3,
    concurrency: 4,
    speculate: true,
    ...config,
  })
  expect([...responses.values()].filter(({ id, answer }) => id !== 'slow' && answer === 'first').length).toBe(9)
  return responses.get('slow')!
}

test('the second start answers first: its answer, steps and lines are the ones', async () => {
  const slow = await run({ ms: [30_000, 100] })
  expect(slow).toMatchObject({ answer: 'second', attempts: 1, logs: ['second'] })
  expect(slow.trajectory.map(({ action }) => action)).toEqual(['second'])
  expect(starts()).toBe(2)
  // Whoever is slower is told to give up.
  await expect.poll(ledger).toContain('given up first')
})

test('the first start answers first all the same', async () => {
  const slow = await run({ ms: [1500, 30_000] })
  expect(slow).toMatchObject({ answer: 'first', attempts: 1, logs: ['first'] })
  expect(slow.trajectory.map(({ action }) => action)).toEqual(['first'])
  await expect.poll(ledger).toContain('given up second')
})

test('without the option, and with rerun: never, nothing is started twice', async () => {
  expect(await run({ ms: [1500, 10] }, { speculate: false })).toMatchObject({ answer: 'first' })
  expect(starts()).toBe(1)
  for (const name of readdirSync(folder)) rmSync(join(folder, name))
  expect(await run({ ms: [1500, 10] }, {}, { rerun: 'never' })).toMatchObject({ answer: 'first' })
  expect(starts()).toBe(1)
})

test('the worker of the first dies while the second runs: nobody is charged', async () => {
  const slow = await run({ ms: [1500, 1500], end: 'die' }, { maxAttempts: 3 })
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
  await run({ ms: [10, 10], asks: 'slow', clock: 'runs' }, { services })
  expect(starts()).toBe(2)
})

test('cancelling ends both', async () => {
  const signal = AbortSignal.timeout(2000)
  const slow = await run({ ms: [30_000, 30_000] }, { signal })
  expect(slow.status).toBe('cancelled')
  await expect.poll(ledger).toContain('given up first')
  await expect.poll(ledger).toContain('given up second')
})
