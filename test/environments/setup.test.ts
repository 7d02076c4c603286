import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Runners } from 'manyworlds'
import { defineEnvironment } from 'manyworlds/agents'
import { afterAll, expect, it } from 'vitest'
import { preparedAgent, spoiltAgent } from '../agents/prepared-worlds.ts'

/** `setup` of an environment. */

const folder = mkdtempSync(join(tmpdir(), 'manyworlds-setup-'))
afterAll(async () => {
  await Runners.shutdown()
  rmSync(folder, { recursive: true })
})

it('runs once in each worker, before its first episode, and its time is nobody’s', async () => {
  const ledger = join(folder, 'ledger')
  const tasks = Array.from({ length: 20 }, () => preparedAgent.task(undefined))
  const config = { workerNum: 2, concurrency: 2, timeoutMs: 3000, env: { PREPARED_LEDGER: ledger } }
  const responses = [...(await Runners.runTask(tasks, config)).values()]
  expect(responses.map(({ status, answer }) => [status, answer])).toEqual(Array(20).fill(['success', 1]))
  const workers = readFileSync(ledger, 'utf8').trim().split('\n')
  expect(new Set(workers).size).toBe(workers.length)
})

it('that throws fails the tasks that wait for it', async () => {
  const { status, error } = await Runners.runTask(spoiltAgent.task(undefined), { workerNum: 1 })
  expect({ status, code: error?.code, message: error?.message }).toEqual({
    ...{ status: 'failed', code: 'SETUP_FAILED' },
    message: "setup of agent 'spoilt' failed: there is no such thing here",
  })
})

it('must be a function', () => {
  const definition = { name: 'a', setup: 1, reset: () => ({ state: 0, observation: 0 }), step: () => ({}) }
  expect(() => defineEnvironment(definition as never)).toThrow(
    "`setup` of environment 'a' must be a function, it is number",
  )
})
