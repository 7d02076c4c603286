import { TrainingDb } from '../../../src/store/trainings/training-db.ts'
import { planRow, updateRow, versionRow } from '../../store/training-rows.ts'

/** Writes the first update of a training up to a point, and is killed there, or stays. */
const [path, until] = process.argv.slice(2) as [string, string]
const db = TrainingDb.open({
  ...{ path, shared: true, id: 't', mode: 'auto', durability: 'normal' },
  begin: { manyworlds: '0.1.0', agent: 'clerk', policy: 'desk', seed: 7, config: null },
})
const here = (point: string) => {
  if (point === until) process.kill(process.pid, 'SIGKILL')
}
here('opened')
db.plan(planRow(0))
here('planned')
const state = await db.writeFile(Buffer.from('state 0'))
const weights = await db.writeFile(Buffer.from('weights 1'))
here('written')
db.update({ update: updateRow(0, state), version: versionRow(1, weights, 9), sampler: { next: 1 } })
here('committed')
console.log('waiting')
setInterval(() => {}, 1000)
