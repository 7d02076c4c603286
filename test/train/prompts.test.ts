import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Runners } from 'manyworlds'
import { DistributedTrainingPipeline, type EpochReport, type PipelineOptions, promptLearner } from 'manyworlds/train'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { rulesTasks, writer } from '../agents/rules.ts'
import { type ModelServer, startModelServer } from '../models/scripted-server.ts'

let server: ModelServer
beforeAll(async () => {
  server = await startModelServer()
})
afterAll(async () => {
  await Runners.shutdown()
  await server.close()
})

const newStore = () => {
  const path = mkdtempSync(join(tmpdir(), 'mw-prompts-'))
  onTestFinished(() => rmSync(path, { recursive: true, force: true }))
  return path
}

const price = { input: 1, output: 2 }
const models = (reflect = 'reflector') => ({
  student: { baseURL: server.baseURL, model: 'student', price },
  large: { baseURL: server.baseURL, model: reflect, price },
})

const options = (more: Partial<PipelineOptions> = {}): PipelineOptions => ({
  ...{ agent: writer, tasks: rulesTasks(), models: models(), store: newStore(), runId: 'rules', workerNum: 1, seed: 3 },
  evaluate: { testRollouts: 1 },
  learner: promptLearner({ reflect: 'large', budget: { evaluations: 300 } }),
  ...more,
})

async function train(given: PipelineOptions, epochs?: number): Promise<EpochReport[]> {
  const reports: EpochReport[] = []
  for await (const report of new DistributedTrainingPipeline(given).train(epochs === undefined ? {} : { epochs }))
    reports.push(report)
  return reports
}

test('texts become better on tasks that were never seen, and a control with the same budget does not', async () => {
  const reports = await train(options())
  console.log(reports.map(({ epoch, version, best, metrics, validation }) => [epoch, version, best, JSON.stringify(metrics), validation?.success?.value].join(' ')).join('\n'))
  console.log(JSON.stringify(reports.at(-1)!.test))
})
