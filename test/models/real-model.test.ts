import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type RunConfig, Runners } from '../../dist/index.js'
import { checkTrajectory, RunFile, tokenRows } from '../../dist/store/index.js'
import { person, talker } from '../agents/models.ts'
import { SMOLLM_SET_UP_MS, type SmolLm, startSmolLm, whyNoSmolLm } from './smollm.ts'

const missing = await whyNoSmolLm()

describe.skipIf(missing)('a real model', () => {
  let server: SmolLm
  let store: string
  beforeAll(async () => {
    server = await startSmolLm()
    store = mkdtempSync(join(tmpdir(), 'mw-real-'))
  }, SMOLLM_SET_UP_MS)
  afterAll(async () => {
    await Runners.shutdown()
    await server?.close()
    if (store) rmSync(store, { recursive: true, force: true })
  })
  const using = (runId: string, extraBody: Record<string, unknown> = {}): RunConfig => ({
    ...{ store, runId, workerNum: 2 },
    models: { m: { baseURL: server.baseURL, model: 'smollm2', tokens: true, maxConcurrent: 4, extraBody } },
  })

  test('answers 20 tasks in the form that was asked for; ids and log-probabilities are in the run file', {
    timeout: 300_000,
  }, async () => {
    const tasks = Array.from({ length: 20 }, (_, n) =>
      person.task(`Anna, who is ${20 + n}, went home.`, { id: `p${n}` }),
    )
    // With a seed: how many answers are cut off is the same each time.
    const responses = await Runners.runTask(tasks, using('people', { seed: 1 }))
    const failures = [...responses.values()].flatMap(({ error }) => error ?? [])
    // A model this small may run out of tokens before it closes its answer; nothing else may happen.
    for (const { code, message } of failures)
      expect([code, message]).toEqual(['MODEL_OUTPUT_INVALID', expect.anything()])
    expect(failures.length).toBeLessThanOrEqual(4)
    for (const { answer } of responses.values())
      if (answer) expect(answer).toEqual({ name: expect.any(String), age: expect.any(Number) })
    using file = RunFile.open('people', { store })
    let [seen, whole] = [0, 0]
    for await (const trajectory of file.trajectories()) {
      expect(checkTrajectory(trajectory)).toEqual([])
      const step = trajectory.steps[0]!
      if (step.kind !== 'model') throw new Error('no model step')
      const { tokens } = step
      const { completion, logProbs } = tokens!
      // The server leaves out tokens that are half a character. Then the others cannot be learned from, and it shows.
      const isWhole = completion.length === step.usage!.outputTokens
      expect(logProbs?.length).toBe(isWhole ? completion.length : undefined)
      expect(logProbs?.every((logProb) => logProb <= 0) ?? true).toBe(true)
      if (isWhole) whole++
      expect(tokens).toMatchObject({ constrained: true, promptUnknown: true })
      seen++
    }
    expect(seen).toBe(20)
    expect(whole).toBeGreaterThan(10)
  })

  test('each prompt of a conversation begins with the one before and its completion, and the server has it', {
    timeout: 300_000,
  }, async () => {
    const says = ['Hello, who are you?', 'Name a color.', 'And another one?', 'Thank you.']
    const tasks = [0, 1, 2, 3].map((slot) => talker.task({ url: server.url, slot, says }, { id: `slot ${slot}` }))
    const responses = await Runners.runTask(tasks, using('talks'))
    for (const { answer: turns, error } of responses.values()) {
      if (!turns) throw error
      for (const [n, { cached }] of turns.entries())
        if (n > 0) expect(cached).toBe(turns[n - 1]!.prompt + turns[n - 1]!.completion - 1)
    }
    using file = RunFile.open('talks', { store })
    for await (const trajectory of file.trajectories()) {
      expect(checkTrajectory(trajectory)).toEqual([])
      // The ids of all turns are one row: each step has only what is new.
      const { rows, refused } = tokenRows(trajectory, { allowed: ['RAW_LOG_PROBS'] })
      expect([rows.length, refused]).toEqual([1, []])
      // This server samples at 0.8, and its log-probabilities are of temperature 1: not to be trained on.
      expect(tokenRows(trajectory).refused.map(({ step }) => step)).toEqual(says.map((_, step) => step))
      expect(rows[0]!.spans).toHaveLength(says.length)
    }
  })
})
