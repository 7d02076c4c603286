import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { runTask } from '../../runners/runners.ts'
import { echo, isRight, killer, spoilsGrade, wanders } from '../agents.ts'
import type { Case } from '../case.ts'

/** The hash of the digests of all walks, in order of their ids: the same on every engine and in every version. */
const WALKS = '1cd1d3835113301c805fc219ddefdd5ba55020d7489d0c0db80024615baed21b'

/** The experience that a run records. */
export const experienceCases: Case[] = [
  {
    name: 'every rollout of a task is graded in a worker, and only graders get the ground truth',
    async run(kit) {
      const tasks = Array.from({ length: 50 }, (_, i) =>
        echo.task(i, { id: `t${i}`, groundTruth: i % 2 === 0 ? i : -1 }),
      )
      const responses = await runTask(tasks, kit.conf({ rollouts: 3, grade: isRight }))
      assert.equal(responses.size, 150)
      for (const [i] of tasks.entries())
        for (const id of [`t${i}`, `t${i}@2`, `t${i}@3`]) {
          const { grade, groupId } = responses.get(id)!
          assert.equal(groupId, `t${i}`)
          assert.equal(grade?.success, i % 2 === 0)
          assert.equal(grade?.feedback, `${i}`)
        }
    },
  },
  {
    name: 'a grader that kills or blocks its worker gives no reward; all answers stay, and nothing is graded twice',
    needsProcess: true,
    async run(kit) {
      const tasks = [
        ...Array.from({ length: 40 }, (_, i) => echo.task(i, { id: `t${i}`, groundTruth: i })),
        echo.task('crash', { id: 'crash', grade: spoilsGrade }),
        echo.task('block', { id: 'block', grade: spoilsGrade }),
        killer.task('sigkill', { id: 'killer' }),
      ]
      const responses = await runTask(tasks, kit.conf({ grade: isRight, gradeTimeoutMs: 3000 }))
      assert.equal(responses.get('crash')!.grade?.error?.code, 'GRADER_CRASHED')
      assert.equal(responses.get('block')!.grade?.error?.code, 'GRADER_BLOCKED_WORKER')
      assert.equal(responses.get('killer')!.status, 'crashed')
      for (const id of ['crash', 'block']) {
        assert.equal(responses.get(id)!.status, 'success')
        assert.equal(responses.get(id)!.grade?.reward, null)
      }
      for (let i = 0; i < 40; i++) assert.equal(responses.get(`t${i}`)!.grade?.reward, 1)
    },
  },
  {
    name: 'the same seed gives the same experience on every engine, even if workers are killed meanwhile',
    needsProcess: true,
    async run(kit) {
      const walks = Array.from({ length: 60 }, (_, i) => wanders.task(5 + (i % 20), { id: `w${i}` }))
      const killers = (['sigkill', 'exit', 'sigkill'] as const).map((how, i) => killer.task(how, { id: `k${i}` }))
      // Use a random order, and more workers than most cases have.
      const places = new Map([...walks, ...killers].map((task) => [task, Math.random()]))
      const mixed = [...places.keys()].sort((a, b) => places.get(a)! - places.get(b)!)
      const responses = await runTask(mixed, kit.conf({ seed: 11, rollouts: 2, workerNum: 4 }))
      const digests = walks.flatMap(({ id }) => [responses.get(id!)!.digest, responses.get(`${id}@2`)!.digest])
      assert.equal(new Set(digests).size, 120)
      assert.equal(hash('sha256', digests.join()), WALKS)
      for (const { id } of killers) assert.equal(responses.get(id!)!.status, 'crashed')
    },
  },
]
