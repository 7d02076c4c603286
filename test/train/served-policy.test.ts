import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Runners } from 'manyworlds'
import { StoredTraining } from 'manyworlds/runs'
import { DistributedTrainingPipeline, type EpochReport, type PipelineOptions } from 'manyworlds/train'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import type { ServerProcess } from '../models/server-process.ts'
import { freePort } from '../support/free-port.ts'
import { refused } from '../support/refused.ts'
import { journalOf, type LettersServerOptions, startLettersServer } from './letters/server.ts'

const adapters = mkdtempSync(join(tmpdir(), 'mw-adapters-'))
let server: ServerProcess
let letters: typeof import('../agents/letters.ts')
let port: number

/** The agent has the address of the server from when its module is read. */
beforeAll(async () => {
  port = await freePort()
  server = await startLettersServer({ port })
  process.env.LETTERS_URL = server.url
  process.env.LETTERS_FOLDER = adapters
  letters = await import('../agents/letters.ts')
})
afterAll(async () => {
  await Runners.shutdown()
  await server.close()
  rmSync(adapters, { recursive: true, force: true })
})

const folder = () => {
  const path = mkdtempSync(join(tmpdir(), 'mw-letters-'))
  onTestFinished(() => rmSync(path, { recursive: true, force: true }))
  return path
}

/** Another server at the same address: an agent with another address would be another agent. */
async function serveAs(options: LettersServerOptions): Promise<void> {
  await server.close()
  server = await startLettersServer({ ...options, port })
}

async function train(options: Partial<PipelineOptions>, epochs = 4): Promise<EpochReport[]> {
  const reports: EpochReport[] = []
  const pipeline = new DistributedTrainingPipeline({
    ...{ agent: letters.reader, tasks: letters.lettersTasks(60), offTask: letters.lettersTasks(12, true) },
    ...{ store: false, workerNum: 2, seed: 3, rollouts: 8, tasksPerUpdate: 6, tasksPerEpoch: 18 },
    ...options,
  })
  for await (const report of pipeline.train({ epochs })) reports.push(report)
  return reports
}

test('a language model with a tool learns from its tokens, and each version is served under a name of its own', async () => {
  const store = folder()
  const reports = await train({ store, runId: 'letters' }, 6)
  const [first, last] = [reports[0]!, reports.at(-1)!]
  expect(last.successRate).toBeGreaterThan(first.successRate! + 0.4)
  expect(last.test!.difference!.low).toBeGreaterThan(0)
  expect(last.metrics).toMatchObject({ ratio: 1, driftedTurns: 0, refusedCalls: 0, tokens: expect.any(Number) })
  expect(reports.every(({ offTask }) => offTask?.before.success !== undefined)).toBe(true)
  expect(last.offTask!.version).toBe(last.version)

  const { loads, unloads, has } = await journalOf(server)
  expect(loads.every((name) => /^letters-v\d+-[0-9a-f]{12}$/.test(name))).toBe(true)
  expect([unloads.length, has]).toEqual([loads.length, []])
  expect(readdirSync(adapters)).toEqual([])

  using stored = StoredTraining.open(join(store, 'letters'))
  expect(stored.evaluations().some(({ split }) => split === 'off-task')).toBe(true)
}, 120_000)

test('the same seed gives the same curve, killed workers and a server that is started anew notwithstanding', async () => {
  await serveAs({})
  const options = { workerNum: 2, evaluate: false } as const
  const [calm] = (await train(options, 1)).map(({ digest }) => digest)
  // Slow enough that the training goes on when the server is back.
  await serveAs({ latencyMs: 60 })
  const restarted = (async () => {
    // A server that was never there is a mistake; one that was may be starting anew.
    const loads = async () => (await journalOf(server)).loads.length
    await expect.poll(loads, { timeout: 60_000, interval: 20 }).toBeGreaterThan(0)
    process.kill(server.pid, 'SIGKILL')
    server = await startLettersServer({ latencyMs: 5, port })
  })()
  const [disturbed] = (await train({ ...options, workerNum: 3, concurrency: 4 }, 1)).map(({ digest }) => digest)
  await restarted
  expect(disturbed).toBe(calm)
  expect((await journalOf(server)).loads.length).toBeGreaterThan(0)
}, 120_000)

test('collecting ahead, the versions of open plans stay with the server', async () => {
  await serveAs({ latencyMs: 2 })
  const reports = await train({ overlap: { maxStaleness: 2 } }, 6)
  const last = reports.at(-1)!
  // How fast it learns depends on which versions the episodes of an update came from.
  expect(last.successRate).toBeGreaterThan(reports[0]!.successRate! + 0.15)
  expect(last.staleness!.max).toBeLessThanOrEqual(2)
  expect((await journalOf(server)).has).toEqual([])
}, 120_000)

test('turns whose tokens come back as others are branches, and both are learned from', async () => {
  await serveAs({ drifts: true })
  const [report] = await train({ evaluate: false }, 1)
  expect(report!.metrics.driftedTurns).toBeGreaterThan(0)
  expect(report!.metrics.ratio).toBeCloseTo(1, 9)
}, 120_000)

test('a server that answers by another model fails the episodes', async () => {
  await serveAs({ echoes: 'base' })
  const { message } = await refused(() => train({ evaluate: false }, 1), 'TRAINING_FAILED')
  expect(message).toContain("MODEL_MISMATCH: model 'letters': requested 'letters-v0-")
  expect(message).toContain("the server answered with 'base'")
}, 120_000)

test('a server that does not say its tokens: nothing can be learned, with the reason', async () => {
  await serveAs({ silent: true })
  const { message } = await refused(() => train({ evaluate: false }, 1), 'ROW_INVALID')
  expect(message).toContain('step 0 has no token ids: the server does not return them')
}, 120_000)

test('no server: one error that names it', async () => {
  await server.close()
  const { message } = await refused(() => train({ evaluate: false }, 1), 'POLICY_NOT_SERVED')
  expect(message).toMatch(/vllm: http:\/\/127.0.0.1:\d+\/v1\/models is not reachable: ECONNREFUSED/)
  server = await startLettersServer({ port })
}, 120_000)
