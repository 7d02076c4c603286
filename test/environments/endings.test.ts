import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { Runners } from 'manyworlds'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import * as worlds from '../agents/worlds.ts'

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'manyworlds-endings-'))
})
afterAll(async () => {
  await Runners.shutdown()
  rmSync(folder, { recursive: true })
})

const ledger = () => join(folder, 'ledger.txt')
const last = { done: true, success: true }

describe('the response says how the episode ended', () => {
  it.each([
    ['it came to its end', { length: 3 }, { kind: 'terminated' }, 3, null],
    ['it came to its end, and is solved', { returns: last }, { kind: 'terminated' }, 2, true],
    [
      'it came to its end, and is not solved',
      { returns: { ...last, success: false } },
      { kind: 'terminated' },
      2,
      false,
    ],
    ['its last step was its end', { length: 5 }, { kind: 'terminated' }, 5, null],
    ['it took too many steps', {}, { kind: 'truncated', by: 'maxSteps' }, 5, null],
    [
      'the environment cut it short',
      { returns: { truncated: true } },
      { kind: 'truncated', by: 'environment' },
      2,
      null,
    ],
    ['nobody knows', { returns: { done: true, truncated: 'unknown' } }, { kind: 'unknown' }, 2, null],
  ])('%s', async (_how, script, ending, steps, success) => {
    const { episode, answer, grade } = await Runners.runTask(worlds.puppet.task({ ...script, ledger: ledger() }))
    const finalObservation = { at: steps, action: `do ${steps - 1}` }
    expect(episode).toEqual({ ending, finalObservation, reward: steps / 2, success })
    expect(answer).toEqual(finalObservation)
    // Without a grader, the environment says how good it was.
    expect(grade).toEqual({ reward: steps / 2, success, grader: { name: 'puppet' } })
  })

  it('its time was over: what was reached is what is graded', async () => {
    const { status, episode, grade } = await Runners.runTask(worlds.hasty.task({ ledger: ledger(), step: 'hang' }))
    expect(status).toBe('success')
    expect(episode).toEqual({
      ...{ ending: { kind: 'truncated', by: 'timeout' }, finalObservation: { at: 1, action: 'do 0' } },
      ...{ reward: 0.5, success: null },
    })
    expect(grade?.reward).toBe(0.5)
  })

  it('not where the task failed: that has no reward', async () => {
    const { status, episode, grade } = await Runners.runTask(worlds.puppet.task({ ledger: ledger(), step: 'throw' }))
    expect([status, episode, grade]).toEqual(['failed', undefined, undefined])
  })
})

it('is in the run file, with the last observation, which is not written twice', async () => {
  const config = { store: folder, runId: 'kept' }
  const tasks = [
    worlds.walker.task({ width: 2 }, { id: 'walk' }),
    worlds.puppet.task({ ledger: ledger() }, { id: 'long' }),
    worlds.learner.task(1, { id: 'text' }),
  ]
  const before = await Runners.runTask(tasks, config)
  const after = await Runners.runTask(tasks, { store: folder, resume: 'kept' })
  for (const [id, { episode, answer, restored }] of after) {
    expect(restored).toBe(true)
    expect(episode).toEqual(before.get(id)!.episode)
    expect(episode?.finalObservation).toEqual(answer)
  }
  using db = new DatabaseSync(join(folder, 'store.sqlite'), { readOnly: true })
  const rows = db.prepare('SELECT id, ending, answer, final_observation FROM responses ORDER BY id').all()
  expect(rows.map(({ id, ending }) => [id, ending])).toEqual([
    ['long', 'truncated: maxSteps'],
    ['text', 'terminated'],
    ['walk', 'terminated'],
  ])
  for (const { answer, final_observation } of rows) expect(final_observation).toBe(answer)
  const written = db.prepare('SELECT count(final_observation) AS count FROM _attempts').get()
  expect(written?.count).toBe(0)
})

describe('an episode is graded', () => {
  it.each([
    ['by its environment', worlds.judged, 'judged.grade'],
    ['by its agent, if that says how', worlds.judgedOtherwise, 'strict'],
  ])('%s', async (_by, agent, name) => {
    const { grade } = await Runners.runTask(agent.task('say', { groundTruth: 'sample 0' }))
    expect(grade).toMatchObject({ reward: name === 'strict' ? 0 : 0.5, grader: { name } })
  })
})
