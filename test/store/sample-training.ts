import { Runners } from 'manyworlds'
import { TrainingDb } from '../../src/store/trainings/training-db.ts'
import { echo } from '../agents/basics.ts'
import { shaOf, updateRow, versionRow } from './training-rows.ts'

interface Sample {
  readonly id: string
  readonly updates: number
  /** Bytes of a version; default: a text. */
  readonly weights?: (version: number) => Uint8Array
  /** Whether its updates and evaluations have runs. */
  readonly withRuns?: boolean
  readonly ending?: 'finished' | 'interrupted' | 'failed'
}

const text = (version: number) => Buffer.from(`weights ${version}`)

/** Writes a training into the store of a folder, as a pipeline would: it gets better, and has an alarm at its end. */
export async function sampleTraining(
  store: string,
  { id, updates, weights = text, withRuns = false, ending = 'finished' }: Sample,
): Promise<void> {
  const path = `${store}/store.sqlite`
  const db = TrainingDb.open({
    ...{ path, shared: true, id, mode: 'start', durability: 'normal' },
    begin: {
      manyworlds: '0.1.0',
      agent: 'clerk',
      policy: 'desk',
      seed: 7,
      config: { rollouts: 8 },
      script: 'train.ts',
    },
  })
  const run = async (runId: string) => {
    if (withRuns) await Runners.runTask(echo.task('hello', { id: 'a' }), { store, runId })
  }
  const evaluate = async (version: number, split: 'validation' | 'test') => {
    const name = `${id}.v${String(version).padStart(5, '0')}.${split}`
    await run(name)
    const value = 0.2 + (0.7 * version) / updates
    const summary = { success: { value, low: value - 0.1, high: value + 0.08 }, reward: null, withoutResult: 0 }
    db.evaluation({ version, split, run: name, tasks: 24, rollouts: 4, summary }, version)
  }
  const publish = async (version: number) => {
    const bytes = weights(version)
    return versionRow(version, await db.writeFile(bytes), bytes.length)
  }
  db.version(await publish(0))
  await evaluate(0, 'validation')
  for (let number = 0; number < updates; number++) {
    const name = `${id}.u${String(number).padStart(5, '0')}`
    const epoch = 1 + Math.floor(number / 5)
    db.plan({ number, epoch, version: number, run: name, seed: number, tasks: ['a'] })
    await run(name)
    const successRate = number === 1 ? null : 0.2 + (0.7 * number) / updates
    const entropy = 2 - (1.9 * number) / updates
    const metrics = { loss: 0.1 / (number + 1), entropy, klFromBehavior: 1e-6 * number, gradientNorm: 3 - entropy }
    const alarms = number === updates - 1 ? ['entropy has fallen from 2.00 to 0.0190'] : []
    const report = { successRate, reward: successRate, episodes: 128, length: 4.5, metrics, alarms }
    const stateSha = await db.writeFile(Buffer.from(`state ${number}`))
    const row = { ...updateRow(number, stateSha), epoch, report, curveSha: shaOf(`${id} ${number}`) }
    db.update({ update: row, version: await publish(number + 1), sampler: null })
    if ((number + 1) % 5 === 0) await evaluate(number + 1, 'validation')
  }
  await evaluate(0, 'test')
  await evaluate(updates, 'test')
  db.close(ending, ending === 'failed' ? 'the learner gave NaN' : undefined)
}
