import { readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { openForReading } from '../../dist/store/open-for-reading.js'
import { project } from './project.ts'

const LIGHTS = fileURLToPath(new URL('../agents/lights.ts', import.meta.url))

export const HEAD = `import { DistributedTrainingPipeline } from 'manyworlds/train'
import { driver, lightsTasks } from ${JSON.stringify(LIGHTS)}
const settings = { agent: driver, seed: 5, rollouts: 4, tasksPerUpdate: 4, tasksPerEpoch: 8, evaluate: { testRollouts: 1 }, workerNum: 2, algorithm: { lr: 0.3 } }
`

/** A script that trains by itself; one that leaves it to the command line. `delayMs`: how long a step takes at most. */
export const trains = (delayMs = 0, more = '') => `${HEAD}
const pipeline = new DistributedTrainingPipeline({ ...settings, tasks: lightsTasks(40, { delayMs: ${delayMs} }), ${more} })
for await (const { epoch, digest } of pipeline.train({ epochs: 2 })) console.log('epoch', epoch, digest)
`
export const exportsIt = (delayMs = 0, more = '') => `${HEAD}
export default new DistributedTrainingPipeline({ ...settings, tasks: lightsTasks(40, { delayMs: ${delayMs} }), epochs: 2, ${more} })
`

/** A project with training scripts, and what its store says of a training. */
export function trainingProject(files: Readonly<Record<string, string>>) {
  const { path, options } = project(files)
  const training = (id: string, folder = '.manyworlds/runs') => {
    using db = openForReading(path(`${folder}/store.sqlite`))
    return db
      .prepare(
        `SELECT t.seed, t.ending, t.sessions, count(u.number) AS updates, max(u.epoch) AS epochs,
         (SELECT curve_sha FROM _updates WHERE training = t.training ORDER BY number DESC LIMIT 1) AS digest
         FROM _trainings t LEFT JOIN _updates u USING (training) WHERE t.id = ?`,
      )
      .get(id) as { seed: number; ending: string; sessions: number; updates: number; epochs: number; digest: string }
  }
  const trainings = () => {
    using db = openForReading(path('.manyworlds/runs/store.sqlite'))
    return db
      .prepare('SELECT id FROM _trainings ORDER BY training')
      .all()
      .map(({ id }) => String(id))
  }
  const isStored = () => readdirSync(path('')).includes('.manyworlds')
  return { path, options, training, trainings, isStored }
}
