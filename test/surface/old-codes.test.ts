import { copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { Runners } from 'manyworlds'
import { RunFile, Trajectory } from 'manyworlds/runs'
import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import { manyworlds } from '../cli/manyworlds.ts'
import { finishedTasks } from '../store/fixtures/first-edition.ts'

afterAll(() => Runners.shutdown())

const [OLD, NEW] = ['ANSWER_NOT_SERIALISABLE', 'ANSWER_NOT_SERIALIZABLE']

/** A store of an earlier version in which a task failed with the code in its earlier spelling. */
function oldStore(fixture: string, name: string): string {
  const store = mkdtempSync(join(tmpdir(), 'manyworlds-codes-'))
  onTestFinished(() => rmSync(store, { recursive: true, force: true }))
  const path = join(store, `${name}.sqlite`)
  copyFileSync(join(import.meta.dirname, '../store/fixtures', fixture, `${name}.sqlite`), path)
  using db = new DatabaseSync(path)
  const { changes } = db
    .prepare(
      `UPDATE _attempts SET error = replace(error, '"' || error_code || '"', '"${OLD}"'), error_code = '${OLD}'
       WHERE error_code IS NOT NULL AND typeof(error) = 'text'`,
    )
    .run()
  expect(changes).toBeGreaterThan(0)
  return store
}

describe.each([
  ['a file of the first edition', '', 'finished'],
  ['a store of version 6', 'sixth', 'store'],
])('%s with a code in its earlier spelling', (_what, fixture, name) => {
  it('is read with the code of today', async () => {
    const store = oldStore(fixture, name)
    using run = RunFile.open('finished', { store })
    const task = run.task('never')!
    expect(task.response!.error!.code).toBe(NEW)
    expect(task.attempts.map(({ error }) => error?.code)).toEqual([NEW, NEW])
    expect([...run.outcomes()].find(({ id }) => id === 'never')!.code).toBe(NEW)
    expect([...run.rollouts()].find(({ taskId }) => taskId === 'never')!.code).toBe(NEW)
    const shown = await manyworlds(['show', 'finished'], { cwd: store, env: { MANYWORLDS_STORE: store } })
    expect(shown.stdout).toContain(NEW)
    expect(shown.stdout).not.toContain(OLD)
  })

  it('is resumed with the code of today', async () => {
    const store = oldStore(fixture, name)
    const config = { store, resume: 'finished', maxAttempts: 2 }
    const response = (await Runners.runTask(finishedTasks, config)).get('never')!
    expect([response.restored, response.error?.code]).toEqual([true, NEW])
  })
})

it('a trajectory that was exported with the earlier spelling is read with the code of today', async () => {
  const store = oldStore('sixth', 'store')
  using run = RunFile.open('finished', { store })
  const text = JSON.stringify(await run.task('never')!.response!.toTrajectory())
  const { ending } = Trajectory.fromJSON(JSON.parse(text.replaceAll(NEW, OLD)))
  expect(ending).toMatchObject({ kind: 'failed', error: { code: NEW } })
})
