import { type ActionStep, Runners } from 'manyworlds'
import { afterAll, expect, test } from 'vitest'
import type { ActionRow } from '../../dist/train/row.js'
import { softmaxCore } from '../../dist/train/softmax/softmax-core.js'
import { deskTasks } from '../../examples/tool-desk/desk.ts'
import { clerkPolicy, trainedClerk } from '../agents/trained.ts'
import { trainDesk } from './desk-training.ts'

afterAll(() => Runners.shutdown())

const tasks = (agent: typeof trainedClerk) =>
  deskTasks({ part: 'train', count: 40, seed: 3 }).map((input) => agent.task(input))

/** Fails unless each step has the log-probability that a learner in this process computes, bit for bit. */
async function expectSameLogProbs(steps: readonly ActionStep[], from?: Uint8Array): Promise<void> {
  const core = softmaxCore(clerkPolicy, from && { from })
  const rows = steps.map(({ observation, candidates, action, choice }): ActionRow => {
    const decision = { observation, candidates: candidates!, action, index: choice! }
    return { kind: 'action', ...decision, behavior: 0, advantage: 0, weight: 1, version: 0 }
  })
  const { logProbs } = await core.forward(rows, 'current')
  expect(steps.length).toBeGreaterThan(100)
  expect(steps.map(({ logProb }) => logProb)).toEqual(logProbs.map(([logProb]) => logProb))
}

test('a softmax policy acts in workers before it has learned, and records its log-probabilities', async () => {
  const responses = [...(await Runners.runTask(tasks(trainedClerk), { seed: 1, workerNum: 2 })).values()]
  expect(responses.map(({ status }) => status)).toEqual(responses.map(() => 'success'))
  const steps = responses.flatMap(({ trajectory }) => trajectory as readonly ActionStep[])
  await expectSameLogProbs(steps)
  expect(steps[0]).toMatchObject({ policy: { name: 'clerk', version: 0 }, mode: 'sample' })
})

test('a version that was trained here acts in workers, which load its weights as a blob', async () => {
  let trained: { bytes: Uint8Array | null; ref: NonNullable<typeof trainedClerk.params.policy> } | undefined
  for await (const after of trainDesk({
    ...{ policy: clerkPolicy, seed: 1, updates: 130, algorithm: { loss: { name: 'clip' }, lr: 0.05 } },
  }))
    trained = after
  const { ref, bytes } = trained!
  const agent = trainedClerk.withParams({ ...trainedClerk.params, policy: ref })
  const config = { seed: 1, workerNum: 2, blobs: { weights: bytes! } }
  const responses = [...(await Runners.runTask(tasks(agent), config)).values()]
  const steps = responses.flatMap(({ trajectory }) => trajectory as readonly ActionStep[])
  await expectSameLogProbs(steps, bytes!)
  expect(steps[0]).toMatchObject({ policy: { name: 'clerk', version: ref.version } })
  expect(responses.filter(({ episode }) => episode?.success).length).toBeGreaterThan(30)

  const wrong = trainedClerk.withParams({ ...trainedClerk.params, policy: { ...ref, at: { blob: '0'.repeat(64) } } })
  const [failed] = [...(await Runners.runTask([tasks(wrong)[0]!], config)).values()]
  expect(failed).toMatchObject({ status: 'failed', error: { code: 'SETUP_FAILED' } })
}, 300_000)
