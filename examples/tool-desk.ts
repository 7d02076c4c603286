// Trains an agent to use tools: `npx manyworlds train examples/tool-desk.ts`, or by itself, `npx node examples/tool-desk.ts`.
import { stepAgent } from 'manyworlds/agents'
import { DistributedTrainingPipeline, softmaxPolicy } from 'manyworlds/train'
import { desk, deskTasks } from './tool-desk/desk.ts'
import { deskFeatures } from './tool-desk/features.ts'

/** Knows nothing yet, and calls any tool. */
const clerk = stepAgent({ name: 'clerk', environment: desk, policy: softmaxPolicy({ features: deskFeatures }) })

const drawn = deskTasks({ part: 'train', count: 2048 + 128, seed: 1 }).map((input) => ({ input }))
// Operations that training has never seen together.
const heldOut = deskTasks({ part: 'held-out', count: 500, seed: 2 }).map((input) => ({ input }))

export const pipeline = new DistributedTrainingPipeline({
  agent: clerk,
  tasks: { train: drawn.slice(0, 2048), validation: drawn.slice(2048), test: heldOut },
  algorithm: { advantages: { name: 'grpo' }, loss: { name: 'clip' }, lr: 0.05 },
  tasksPerUpdate: 16,
  tasksPerEpoch: 512,
  rollouts: 8,
  seed: 1,
})

if (import.meta.main)
  for await (const { epoch, successRate, test } of pipeline.train({ epochs: 10 })) {
    console.log(`epoch ${epoch}: ${percent(successRate)} of the episodes were solved`)
    if (test)
      console.log(`test: ${percent(test.success?.value)}, before training ${percent(test.before.success?.value)}`)
  }

function percent(share: number | null | undefined): string {
  return share == null ? 'none' : `${(100 * share).toFixed(1)} %`
}
