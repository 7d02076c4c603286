import { expect, it } from 'vitest'
import { manyworlds } from './manyworlds.ts'
import { project } from './project.ts'

/** Solves so many of forty tasks, whatever the seed; the last two throw. */
const SCRIPT = `
import { defineAgent, defineGrader, Runners } from 'manyworlds'
const agent = defineAgent({
  name: 'solver',
  params: { solves: Number(process.argv[2]) },
  run: async (i: number, ctx) => {
    await ctx.step({ action: i, usage: { inputTokens: 10, outputTokens: 1, costUsd: 0.001 } })
    if (i >= 38) throw new Error('cannot')
    return i < ctx.params.solves ? 'right' : 'wrong'
  },
})
const right = defineGrader({
  name: 'right',
  grade: ({ answer, groundTruth }) => {
    if (groundTruth === 'lost') throw new Error('the judge is away')
    return answer === groundTruth
  },
})
const [, , , others = 0, lost = 0] = process.argv.map(Number)
const tasks = Array.from({ length: 40 }, (_, i) =>
  agent.task(i, { id: 'q' + i, groundTruth: i < others ? 'other' : i < lost ? 'lost' : 'right', metadata: { level: i < 20 ? 'easy' : 'hard' } }))
await Runners.runTask(tasks, { grade: right })
`

/** The text with its rows joined. */
const flat = (text: string) => text.replaceAll(/\s+/g, ' ')
const evaluated = () => project({ 'run.ts': SCRIPT })

it('the summary says how many tasks are solved, with an interval, and what failed counts as unsolved', async () => {
  const { options } = evaluated()
  const ran = await manyworlds(
    ['run', 'run.ts', '--run-id', 'r', '--rollouts', '2', '--no-progress', '--', '30'],
    options,
  )
  expect(ran.code).toBe(1)
  expect(ran.stderr).toMatch(/^solved +75\.0 % \(95 % interval \d+\.\d to \d+\.\d\), 60 of 80; 80 rollouts of 40/m)
  expect(ran.stderr).toMatch(/graded only: 78\.9 %/)
  expect(ran.stderr).toMatch(/^reward +0\.789 \(95 % interval/m)
  expect(ran.stderr).toMatch(/^pass@2 +75\.0 %/m)
  const shown = await manyworlds(['show', 'r', '--by', 'level'], options)
  expect(shown.stdout).toMatch(/^solved +75\.0 %/m)
  expect(shown.stdout).toMatch(/^level +easy +100\.0 % .* 20 tasks$/m)
  expect(shown.stdout).toMatch(/^level +hard +50\.0 % .* 20 tasks$/m)
})

it('--fail-under fails a run whose interval begins below, and lets others pass, also with tasks that failed', async () => {
  const { options } = evaluated()
  const words = (solves: string, rate: string) => ['run', 'run.ts', '-q', '--fail-under', rate, '--', solves]
  const good = await manyworlds(words('38', '0.8'), options)
  expect(good.code).toBe(0)
  expect(good.stderr).toContain('at least 80.0 % of tasks are solved, with 95 % confidence')
  const bad = await manyworlds(words('30', '0.8'), options)
  expect(bad.code).toBe(1)
  expect(bad.stderr).toContain('expected at least 80.0 % of tasks to be solved')
  expect(bad.stderr).toMatch(/unsolved: .*q38 \(TASK_THREW\)/)
  // The others are all solved, which says nothing about those whose grader threw.
  const lost = await manyworlds([...words('38', '0.5'), '0', '20'], options)
  expect(lost.code).toBe(1)
  expect(lost.stderr).toContain('20 of 40 rollouts have no result, more than 2.0 %')
  expect(lost.stderr).toMatch(/solved \d+ of 20 rollouts of 40 tasks, 20 with a result: /)
  expect(lost.stderr).toMatch(/not counted: 20 rollouts without a result: 20 GRADER_THREW; of (q\d+(, )?){20}$/m)
  const allowed = ['--max-ungraded', '0.6', ...words('38', '0.5').slice(2), '0', '20']
  expect((await manyworlds(['run', 'run.ts', ...allowed], options)).code).toBe(0)
  const alone = await manyworlds(['run', 'run.ts', '--max-ungraded', '0.6'], options)
  expect([alone.code, alone.stdout]).toEqual([2, ''])
  expect(alone.stderr).toContain('--max-ungraded needs --fail-under RATE')
  const wrong = await manyworlds(words('30', '90'), options)
  expect(wrong.code).toBe(2)
  expect(wrong.stderr).toContain('--fail-under must be at most')
})

it('tasks that a stopped run never started have no result, in its summary, for --fail-under and in show', async () => {
  const { options } = evaluated()
  const words = (...stop: string[]) => ['run', 'run.ts', '--no-progress', ...stop, '--fail-under', '0.1', '--', '38']
  const ran = await manyworlds(words('--run-id', 'r', '--max-cost', '0.02'), options)
  expect(ran.code).toBe(1)
  const [solved, done] = /solved 100\.0 % .* (\d+) of \d+; 40 tasks, \1 with a result/.exec(flat(ran.stderr)) ?? []
  const without = 40 - Number(done)
  expect(without).toBeGreaterThan(10)
  expect(ran.stderr).toContain(`${without} rollouts, not counted: ${without} RUN_BUDGET`)
  expect(ran.stderr).toContain(`${without} of 40 rollouts have no result, more than 2.0 %`)
  expect(flat((await manyworlds(['show', 'r'], options)).stdout)).toContain(solved)
  const none = await manyworlds(words('--deadline', '1ms'), options)
  expect(none.code).toBe(1)
  expect(none.stderr).toContain('no rollout has a result')
  expect(none.stderr).not.toContain('give tasks or the run a grader')
})

it('show --unsolved lists wrong answers and failures of the agent, and not what has no result', async () => {
  const { options } = evaluated()
  await manyworlds(['run', 'run.ts', '-q', '--run-id', 'r', '--', '30', '0', '10'], options)
  const listed = async (...words: string[]) => {
    const { stdout } = await manyworlds(['show', 'r', ...words], options)
    return {
      stdout,
      ids: [...stdout.matchAll(/^(?:success|unsolved|failed) +[\d.]+ \w+ {2}(q\d+) /gm)].map(([, id]) => id!),
    }
  }
  const unsolved = await listed('--unsolved')
  expect(unsolved.ids.sort()).toEqual(Array.from({ length: 10 }, (_, i) => `q${30 + i}`))
  expect(unsolved.stdout).toMatch(/^unsolved +[\d.]+ \w+ {2}q30 {2}'wrong'$/m)
  expect(unsolved.stdout).toMatch(/^failed +[\d.]+ \w+ {2}q38 /m)
  expect(unsolved.stdout).not.toContain('more; --limit')
  expect((await listed('--unsolved', '--limit', '4')).stdout).toContain('… and 6 more; --limit N')
  expect((await listed('--unsolved', '--failed')).ids.sort()).toEqual(['q38', 'q39'])
  expect((await listed('--limit', '100')).ids).toHaveLength(40)
  const json = await manyworlds(['show', 'r', '--unsolved', '--json'], options)
  expect(json.stdout.trim().split('\n')).toHaveLength(10)
})

it('two runs are compared task by task', async () => {
  const { options } = evaluated()
  for (const [runId, solves] of [
    ['old', '20'],
    ['new', '36'],
  ] as const)
    await manyworlds(['run', 'run.ts', '-q', '--run-id', runId, '--', solves], options)
  const compared = await manyworlds(['compare', 'old', 'new', '--flips', '3'], options)
  expect(compared.code).toBe(0)
  expect(compared.stdout).toMatch(/^new is better by 40\.0 points \(95 % interval \d+\.\d to \d+\.\d\)$/m)
  expect(compared.stdout).toContain('16 tasks from unsolved to solved: q20, q21, q22 and 13 more')
  expect(compared.stdout).toContain('0 tasks from solved to unsolved')
  expect(compared.stdout).toMatch(/^tokens in +10 +10$/m)
  const same = await manyworlds(['compare', 'old', 'old', '--json'], options)
  const json = JSON.parse(same.stdout)
  expect(json).toMatchObject({ tasks: 40, success: { value: 0 }, flips: { toSolved: [], toUnsolved: [] } })
  expect(json.verdict).toContain('no significant difference')
})

it('runs that asked something else get no verdict unless they are compared anyway', async () => {
  const { options } = evaluated()
  for (const [runId, ...words] of [
    ['old', '20'],
    ['new', '36', '3'],
  ] as const)
    await manyworlds(['run', 'run.ts', '-q', '--run-id', runId, '--', ...words], options)
  const compared = await manyworlds(['compare', 'old', 'new'], options)
  expect(compared.stdout).toMatch(/^no verdict: 3 tasks have another input or ground truth: q0, q1, q2$/m)
  expect(compared.stdout).toContain('--anyway')
  expect(compared.stdout).not.toContain('points')
  const anyway = await manyworlds(['compare', 'old', 'new', '--anyway'], options)
  expect(anyway.stdout).toMatch(/^new is better by /m)
  expect(anyway.stdout).toContain('compared although 3 tasks have another input')
})
