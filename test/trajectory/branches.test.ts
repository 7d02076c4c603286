import { Runners, type Step } from 'manyworlds'
import { afterAll, expect, test } from 'vitest'
import { branchesOf } from '../../src/trajectory/branches.ts'
import { team, wanderer } from '../agents/branches.ts'

afterAll(() => Runners.shutdown())

const walk = async (slow: readonly string[]) => {
  const { trajectory, error } = await Runners.runTask(team.task(slow, { id: 't' }), { workerNum: 1, seed: 1 })
  expect(error).toBeUndefined()
  return trajectory
}
const byBranch = (steps: readonly Step[]) =>
  Object.fromEntries(
    Object.entries(Object.groupBy(steps, ({ branch = 0 }) => branch)).map(([branch, own]) => [
      branch,
      own!.map(({ index, atMs, opens, ...content }) => content),
    ]),
  )

test('steps of groups, also of groups in groups, say which branch they belong to', async () => {
  const steps = await walk([])
  expect(branchesOf('team', steps)).toEqual([
    { id: 0, agent: 'team', parent: null },
    { id: 1, agent: 'pipeline', parent: { branch: 0, step: null, why: 'parallel' } },
    { id: 2, agent: 'reader', parent: { branch: 1, step: null, why: 'serial' } },
    { id: 3, agent: 'writer', parent: { branch: 1, step: null, why: 'serial' } },
    { id: 4, agent: 'critic', parent: { branch: 0, step: null, why: 'parallel' } },
    { id: 5, agent: 'inner', parent: { branch: 0, step: null, why: 'parallel' } },
    { id: 6, agent: 'left', parent: { branch: 5, step: null, why: 'parallel' } },
    {
      ...{ id: 7, agent: 'right', parent: { branch: 5, step: null, why: 'parallel' } },
      end: { ending: { kind: 'terminated' }, finalObservation: 'the end', reward: 2, success: true },
    },
    { id: 12, agent: 'critic', parent: { branch: 4, step: lastOf(steps, 4), why: 'compaction' } },
    { id: 14, agent: 'left', parent: { branch: 6, step: lastOf(steps, 6), why: 'compaction' } },
    { id: 20, agent: 'critic', parent: { branch: 4, step: lastOf(steps, 4), why: 'compaction' } },
    { id: 22, agent: 'left', parent: { branch: 6, step: lastOf(steps, 6), why: 'compaction' } },
  ])
  for (const { agent, branch } of steps)
    expect(agent).toBe(branchesOf('team', steps).find(({ id }) => id === branch)!.agent)
})

const lastOf = (steps: readonly Step[], branch: number) => steps.findLast((step) => step.branch === branch)!.index

test('each branch is declared once, by the first step that needs it', async () => {
  const steps = await walk(['left'])
  const declared = steps.flatMap(({ opens = [] }) => opens.map(({ id }) => id))
  expect(declared.toSorted((a, b) => a - b)).toEqual([1, 2, 3, 4, 5, 6, 7, 12, 14, 20, 22])
})

test('numbers of branches depend on places, not on who was first', async () => {
  const usual = await walk([])
  for (const slow of [['critic'], ['reader', 'right'], ['left', 'writer', 'critic']]) {
    const other = await walk(slow)
    expect(byBranch(other)).toEqual(byBranch(usual))
    expect(other.map(({ branch }) => branch)).not.toEqual(usual.map(({ branch }) => branch))
  }
})

test('an agent opens branches after a step of its own', async () => {
  const { trajectory, answer } = await Runners.runTask(wanderer.task(0))
  expect(answer).toEqual([1, 2])
  expect(branchesOf('wanderer', trajectory)).toEqual([
    { id: 0, agent: 'wanderer', parent: null },
    { id: 1, agent: 'wanderer', parent: { branch: 0, step: 0, why: 'drift' } },
    { id: 2, agent: 'wanderer', parent: { branch: 1, step: 1, why: 'compaction' } },
  ])
  expect(trajectory.map(({ branch, opens }) => [branch, opens?.length])).toEqual([
    [undefined, undefined],
    [1, 1],
    [undefined, undefined],
    [2, 1],
  ])
})

test('steps of an agent without branches are as small as ever', async () => {
  const { trajectory } = await Runners.runTask(wanderer.task(0))
  expect(Object.keys(trajectory[0]!)).toEqual(['index', 'atMs', 'kind', 'action'])
})
