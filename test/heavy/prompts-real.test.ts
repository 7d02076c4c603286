import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Runners } from 'manyworlds'
import { StoredTraining } from 'manyworlds/runs'
import {
  DistributedTrainingPipeline,
  type EpochReport,
  type PipelineOptions,
  type PromptLearnerOptions,
  promptLearner,
} from 'manyworlds/train'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { clerk, shopTasks } from '../agents/shop.ts'
import { type ModelServer, startModelServer } from '../models/scripted-server.ts'
import { SMOLLM_SET_UP_MS, type SmolLm, startSmolLm, whyNoSmolLm } from '../models/smollm.ts'

/**
 * Prompt evolution for a real model, SmolLM2-135M. It is too small to rewrite texts, which the last test shows; so what rewrites them for the others is
 * a script that takes notes of the feedback.
 */

const missing = await whyNoSmolLm()
const EVALUATIONS = 80

describe.skipIf(missing)('prompts of a real model', () => {
  let small: SmolLm
  let scripted: ModelServer
  let store: string
  beforeAll(async () => {
    ;[small, scripted] = await Promise.all([startSmolLm({ contextTokens: 1024 }), startModelServer()])
    store = mkdtempSync(join(tmpdir(), 'mw-prompts-real-'))
  }, SMOLLM_SET_UP_MS)
  afterAll(async () => {
    await Runners.shutdown()
    await Promise.all([small?.close(), scripted?.close()])
    if (store) rmSync(store, { recursive: true, force: true })
  })

  const options = (runId: string, more: Partial<PromptLearnerOptions> = {}): PipelineOptions => ({
    ...{ agent: clerk, tasks: shopTasks(), store, runId, resume: 'auto', workerNum: 1, seed: 1 },
    ...{
      evaluate: { testRollouts: 1 },
      progress: () => ({ notice: (line: string) => console.log(`${runId}: ${line}`) }),
    },
    models: {
      small: { baseURL: small.baseURL, model: 'smollm2', maxConcurrent: 4 },
      notes: { baseURL: scripted.baseURL, model: 'notes' },
    },
    learner: promptLearner({ reflect: 'notes', budget: { evaluations: EVALUATIONS }, ...more }),
  })

  async function train(given: PipelineOptions, epochs?: number): Promise<EpochReport[]> {
    const reports: EpochReport[] = []
    for await (const report of new DistributedTrainingPipeline(given).train(epochs === undefined ? {} : { epochs }))
      reports.push(report)
    return reports
  }

  const shown = (name: string, { test }: EpochReport) => {
    const figure = (of: { value: number; low: number; high: number } | null) =>
      of && `${of.value.toFixed(3)} [${of.low.toFixed(3)}, ${of.high.toFixed(3)}]`
    const { before, success, difference } = test!
    console.log(`${name}: test ${figure(before.success)} → ${figure(success)}, paired ${figure(difference)}`)
  }

  function evaluationsOf(id: string): number {
    using training = StoredTraining.open(id, { store })
    const collected = training.plans().reduce((sum, { tasks }) => sum + tasks.length, 0)
    const validations = training.evaluations().filter(({ split }) => split === 'validation')
    return collected + validations.reduce((sum, { tasks }) => sum + tasks, 0)
  }

  test('what graders say gets into its instructions, and it does better on questions that it never had; random edits do not help', {
    timeout: 600_000,
  }, async () => {
    const begun = await train(options('learned'), 1)
    expect(begun.at(-1)!.epoch).toBe(1)
    // In a second session.
    const learned = await train(options('learned'))
    expect(learned[0]!.epoch).toBe(2)
    const random = await train(options('random', { control: 'random' }))
    shown('learned', learned.at(-1)!)
    shown('random ', random.at(-1)!)
    expect(evaluationsOf('learned')).toBeLessThanOrEqual(EVALUATIONS)
    expect(evaluationsOf('random')).toBeLessThanOrEqual(EVALUATIONS)
    const { test } = learned.at(-1)!
    expect(test!.difference!.low).toBeGreaterThan(0)
    expect(test!.success!.value).toBeGreaterThan(random.at(-1)!.test!.success!.value + 0.25)
  })

  test('a model that is too weak to rewrite texts does no harm: its answers are counted as of no use, or lose', {
    timeout: 600_000,
  }, async () => {
    const reports = await train(options('itself', { reflect: 'small', maxOutputTokens: 80, minibatch: 2 }), 1)
    shown('itself ', reports.at(-1)!)
    const { proposed, unusable } = reports.at(-1)!.metrics
    expect(proposed! + unusable!).toBe(1)
    using training = StoredTraining.open('itself', { store })
    expect(training.runsOf('all').filter((id) => id.endsWith('.reflect'))).toHaveLength(1)
  })
})
