import { setTimeout as sleep } from 'node:timers/promises'
import { Runners, type RunProgress } from 'manyworlds'
import { RunFile } from 'manyworlds/runs'
import { afterAll, expect, it } from 'vitest'
import { spender, thirdTime } from '../agents/graded.ts'
import { manyworlds } from '../cli/manyworlds.ts'
import { storeFolder } from '../store/store-folder.ts'

afterAll(() => Runners.shutdown())

const base = { workerNum: 2, concurrency: 2 } as const
const tasks = Array.from({ length: 40 }, (_, i) => spender.task({ steps: 2 }, { id: `s${i}` }))
const countsOf = (responses: Map<string, { status: string; error?: { code: string } | undefined }>) => {
  const counts: Record<string, number> = {}
  for (const { status, error } of responses.values()) {
    const key = error?.code ?? status
    counts[key] = (counts[key] ?? 0) + 1
  }
  return counts
}

it('a run that has spent its budget starts nothing new, lets tasks finish, and goes on when it is raised', async () => {
  const { store } = storeFolder()
  const first = await Runners.runTask(tasks, { ...base, store, runId: 'b', maxCostUsd: 0.2 })
  const counts = countsOf(first)
  // Ten tasks of two cents each, and what was under way.
  expect(counts.success).toBeGreaterThanOrEqual(10)
  expect(counts.success).toBeLessThan(25)
  expect(counts.success! + counts.RUN_BUDGET!).toBe(40)
  const undone = [...first.values()].find(({ error }) => error?.code === 'RUN_BUDGET')!
  expect(undone.error!.message).toMatch(/budget \(\$0\.\d+ of \$0\.200\)/)
  {
    using file = RunFile.open('b', { store })
    expect(file.overview()).toMatchObject({ status: 'interrupted', counts: { success: counts.success, cancelled: 0 } })
    expect(file.overview().error).toContain('reached its budget')
  }
  const none = await Runners.runTask(tasks, { ...base, store, resume: 'b', maxCostUsd: 0.2 })
  expect(countsOf(none)).toEqual(counts)
  const rest = await Runners.runTask(tasks, { ...base, store, resume: 'b', maxCostUsd: 10, maxTokens: 1_000_000 })
  expect(countsOf(rest)).toEqual({ success: 40 })
  expect([...rest.values()].filter(({ restored }) => restored)).toHaveLength(counts.success!)
})

it('what failed attempts have spent is part of the usage of the run, also when it is resumed', async () => {
  const { store } = storeFolder()
  const paying = Array.from({ length: 5 }, (_, i) => thirdTime.task(i, { id: `p${i}` }))
  const told: RunProgress[] = []
  const config = { ...base, store, maxAttempts: 3, backoffMs: 1, progress: (now: RunProgress) => void told.push(now) }
  const [one] = [...(await Runners.runTask(paying, { ...config, runId: 'u' })).values()]
  expect(one!.usage).toEqual({ inputTokens: 90, outputTokens: 10, costUsd: 0.01 })
  const all = { inputTokens: 1350, outputTokens: 150, costUsd: expect.closeTo(0.15) }
  expect(told.at(-1)!.usage).toEqual(all)
  await Runners.runTask(paying, { ...config, resume: 'u' })
  expect(told.at(-1)).toMatchObject({ restored: 5, usage: all })
  using file = RunFile.open('u', { store })
  expect(file.spent()).toEqual(all)
  const { stdout } = await manyworlds(['show', 'u', '--dir', store])
  expect(stdout).toContain('1,350 tokens in, 150 out, $0.15')
})

it('tokens count as well, and running tasks are left alone until they are done', async () => {
  const long = spender.task({ steps: 60, ms: 20 }, { id: 'long' })
  const responses = await Runners.runTask([long, ...tasks], { ...base, store: false, maxTokens: 1000 })
  expect(responses.get('long')).toMatchObject({ status: 'success', answer: 60 })
  expect(countsOf(responses).RUN_BUDGET).toBeGreaterThan(20)
})

it('a run over its budget can still be aborted', async () => {
  const aborting = new AbortController()
  const long = spender.task({ steps: 1000, ms: 50 }, { id: 'long' })
  const run = Runners.runTask([long, ...tasks], { ...base, store: false, maxTokens: 500, signal: aborting.signal })
  await sleep(1000)
  aborting.abort()
  expect((await run).get('long')).toMatchObject({ status: 'cancelled', error: { code: 'TASK_CANCELLED' } })
})

it.each([
  { costUsd: -5 },
  { costUsd: Number.NaN },
  { costUsd: 1e300 },
  { inputTokens: -1 },
  { outputTokens: Number.POSITIVE_INFINITY },
])('usage that cannot be is refused, and lowers nothing: %j', async (first) => {
  const response = await Runners.runTask(spender.task({ steps: 1, first }), { ...base, store: false })
  expect(response).toMatchObject({ status: 'failed', error: { code: 'TASK_THREW' }, usage: {} })
  const [key] = Object.keys(first)
  expect(response.error!.message).toMatch(new RegExp(`'usage.${key}' must be a number from 0 to [\\d,]+, it is `))
})

it('usage with an undefined field counts', async () => {
  const first = { inputTokens: 7, costUsd: undefined as never }
  const response = await Runners.runTask(spender.task({ steps: 0, first }), { ...base, store: false })
  expect(response.usage).toEqual({ inputTokens: 7 })
})
