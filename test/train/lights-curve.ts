import { DistributedTrainingPipeline, type PipelineOptions } from 'manyworlds/train'
import { driver, lightsTasks } from '../agents/lights.ts'

/**
 * The digest of the curve of a short training: nine updates, three of each epoch. `disturb` is called in the middle of every second
 * update, when some of its episodes are done and the others are going on.
 */
export async function lightsCurve(on: Partial<PipelineOptions>, disturb?: (update: number) => void): Promise<string> {
  const tasks = lightsTasks(48, disturb && { delayMs: 60 })
  let update = 0
  let episodes = 0
  const pipeline = new DistributedTrainingPipeline({
    ...{ agent: driver, tasks: { train: tasks }, store: false, seed: 5, evaluate: false },
    ...{ rollouts: 4, tasksPerUpdate: 4, tasksPerEpoch: 12, algorithm: { lr: 0.1 } },
    progress: () => ({
      run: () => {
        episodes = 0
      },
      episode: () => {
        if (++episodes === 2 && update % 2 === 1) disturb?.(update)
      },
      update: () => {
        update++
      },
    }),
    ...on,
  })
  let digest = ''
  for await (const report of pipeline.train({ epochs: 3 })) digest = report.digest
  return digest
}
