import { onTestFinished } from 'vitest'
import { TrainingDb } from '../../src/store/trainings/training-db.ts'

/** Opens a training for one test. */
export function openTraining(path: string, options: Partial<Parameters<typeof TrainingDb.open>[0]> = {}): TrainingDb {
  const db = TrainingDb.open({
    ...{ path, shared: true, id: 't', mode: 'auto', durability: 'normal' },
    begin: { manyworlds: '0.1.0', agent: 'clerk', policy: 'desk', seed: 7, config: { rollouts: 8 } },
    ...options,
  })
  onTestFinished(() => {
    try {
      db.close('interrupted')
    } catch {
      // Its file is gone, or was changed by the test.
    }
  })
  return db
}
