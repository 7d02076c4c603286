import assert from 'node:assert/strict'
import { runTask } from '../../runners/runners.ts'
import { echo, isRight, killer, spoilsGrade } from '../agents.ts'
import type { Case } from '../case.ts'

/** What a run leaves behind to learn from. */
export const experienceCases: Case[] = [
  {
    name: 'every rollout of a task is graded where workers are, by code that only graders are given the solution for',
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
    name: 'a grader that takes its worker down gives no reward; all answers stay, and nothing is graded twice',
    async run(kit) {
      const tasks = [
        ...Array.from({ length: 40 }, (_, i) => echo.task(i, { id: `t${i}`, groundTruth: i })),
        echo.task('crash', { id: 'crash', grade: spoilsGrade }),
        echo.task('block', { id: 'block', grade: spoilsGrade }),
        killer.task('sigkill', { id: 'killer' }),
      ]
      const responses = await runTask(tasks, kit.conf({ grade: isRight, gradeTimeoutMs: 5000 }))
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
]
