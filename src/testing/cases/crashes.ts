import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runTask } from '../../runners/runners.ts'
import type { TaskResponse } from '../../task.ts'
import { countStarts, echo, killer, parentOfKiller, pause, stray, suddenKiller } from '../agents.ts'
import type { Case } from '../case.ts'

const count = (responses: Map<string, TaskResponse>) => {
  const statuses: Record<string, number> = {}
  for (const { status } of responses.values()) statuses[status] = (statuses[status] ?? 0) + 1
  return statuses
}

/** Workers that die, and which task is charged. */
export const crashCases: Case[] = [
  {
    name: 'a task that kills its worker with SIGKILL gets one crashed response with its last steps; the others complete uncharged',
    needsProcess: true,
    async run(kit) {
      const tasks = [...Array.from({ length: 20 }, () => pause.task(100)), killer.task('sigkill', { id: 'killer' })]
      const responses = await runTask(tasks, kit.conf())
      assert.deepEqual(count(responses), { success: 20, crashed: 1 })
      const crashed = responses.get('killer')!
      assert.equal(crashed.error!.code, 'WORKER_CRASHED')
      assert.deepEqual(
        crashed.trajectory.map(({ action }) => action),
        ['last step'],
      )
      assert.deepEqual(crashed.logs, ['last line'])
      assert.ok([...responses.values()].every(({ attempts }) => attempts === 1))
    },
  },
  {
    name: 'process.exit and process.abort in a task give one crashed response each',
    needsProcess: true,
    async run(kit) {
      const tasks = [
        killer.task('exit', { id: 'exit' }),
        ...Array.from({ length: 10 }, () => pause.task(100)),
        killer.task('abort', { id: 'abort' }),
      ]
      const responses = await runTask(tasks, kit.conf())
      assert.deepEqual(count(responses), { success: 10, crashed: 2 })
      assert.equal(responses.get('exit')!.error!.code, 'PROCESS_EXIT')
    },
  },
  {
    name: 'a killer after 50 quick successes, concurrency 1 and one attempt: exactly one crashed',
    needsProcess: true,
    async run(kit) {
      const tasks = Array.from({ length: 60 }, (_, i) => suddenKiller.task(i === 50, { id: `t${i}` }))
      const responses = await runTask(tasks, kit.conf({ workerNum: 1, concurrency: 1, maxAttempts: 1 }))
      assert.deepEqual(count(responses), { success: 59, crashed: 1 })
      assert.equal(responses.get('t50')!.status, 'crashed')
    },
  },
  {
    name: 'one poison task among 100: 99 answers and one crashed',
    needsProcess: true,
    async run(kit) {
      const tasks = Array.from({ length: 100 }, (_, i) => suddenKiller.task(i === 37, { id: `t${i}` }))
      const responses = await runTask(tasks, kit.conf())
      assert.deepEqual(count(responses), { success: 99, crashed: 1 })
      assert.equal(responses.get('t37')!.status, 'crashed')
    },
  },
  {
    name: 'three poison tasks with two attempts crash after two attempts, and no other task is charged',
    needsProcess: true,
    async run(kit) {
      const poison = new Set([3, 30, 55])
      const tasks = Array.from({ length: 60 }, (_, i) => suddenKiller.task(poison.has(i), { id: `t${i}` }))
      const responses = await runTask(tasks, kit.conf({ maxAttempts: 2, backoffMs: 1 }))
      assert.deepEqual(count(responses), { success: 57, crashed: 3 })
      for (const [id, { attempts }] of responses) assert.equal(attempts, poison.has(Number(id.slice(1))) ? 2 : 1)
    },
  },
  {
    name: "a task with rerun: 'never' is started at most once, whatever its neighbors do",
    needsProcess: true,
    async run(kit) {
      const folder = mkdtempSync(join(tmpdir(), 'manyworlds-kit-'))
      const tasks = Array.from({ length: 8 }, (_, i) =>
        countStarts.task({ file: join(folder, `${i}`), kill: i === 4 }, { id: `${i}`, rerun: 'never' }),
      )
      const responses = await runTask(tasks, kit.conf({ workerNum: 1, maxAttempts: 3 }))
      for (const { id, status } of responses.values()) {
        const file = join(folder, id)
        const starts = existsSync(file) ? readFileSync(file, 'utf8') : ''
        assert.ok(starts.length <= 'started\n'.length, `task ${id} (${status}) was started more than once`)
        // A task that was about to start may be reported as started, but not the reverse.
        assert.ok(status === 'crashed' || (status === 'success' && starts !== ''))
      }
      assert.equal(responses.get('4')!.status, 'crashed')
      rmSync(folder, { recursive: true })
    },
  },
  {
    name: 'an error thrown outside a task’s call stack fails that task only',
    async run(kit) {
      const responses = await runTask(
        [stray.task(undefined, { id: 'stray' }), ...Array.from({ length: 10 }, () => pause.task(200))],
        kit.conf(),
      )
      assert.equal(responses.get('stray')!.status, 'failed')
      assert.equal(responses.get('stray')!.error!.code, 'UNCAUGHT_IN_TASK')
      assert.deepEqual(count(responses), { failed: 1, success: 10 })
    },
  },
  {
    name: 'a sub-task that kills the worker of its waiting parent is a value for the parent',
    needsProcess: true,
    async run(kit) {
      const response = await runTask(parentOfKiller.task(null), kit.conf({ workerNum: 1, concurrency: 1 }))
      assert.equal(response.answer, 'crashed')
    },
  },
  {
    name: 'after all this, the workers still work',
    async run(kit) {
      const responses = await runTask(
        Array.from({ length: 100 }, (_, i) => echo.task(i)),
        kit.conf(),
      )
      assert.deepEqual(count(responses), { success: 100 })
    },
  },
]
