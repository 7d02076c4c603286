import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { type ActionStep, Runners } from 'manyworlds'
import { pythonWorld, reasoningGymTasks } from 'manyworlds/agents'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { worldEnvSpec } from '../../dist/agents/worlds/world-packages.js'
import { existingEnvironment } from '../../dist/python/environment.js'
import { solver } from '../agents/python-worlds.ts'
import { begin } from './episode.ts'
import { whyNoWorlds } from './needs-python.ts'

const skip = (await whyNoWorlds('reasoning-gym')) !== undefined

/** Python reads reasoning-gym for six seconds, and for longer where others want to read as well. */
const IMPORT_MS = 300_000

afterAll(() => Runners.shutdown())

interface Told {
  readonly question: string
  readonly answer: string
  readonly score: number
  readonly right: string
}

/** What plain reasoning-gym, in the same environment, says. */
function plain(datasets: readonly (readonly [name: string, size: number, seed: number])[]): Told[] {
  const script = fileURLToPath(new URL('python/plain_reasoning_gym.py', import.meta.url))
  const python = existingEnvironment(worldEnvSpec('reasoning-gym'))!
  const args = ['-W', 'ignore', script]
  return JSON.parse(execFileSync(python, args, { input: JSON.stringify(datasets), maxBuffer: 1e9 }).toString())
}

const collect = async <T>(items: AsyncIterable<T>): Promise<T[]> => {
  const all: T[] = []
  for await (const item of items) all.push(item)
  return all
}

describe.skipIf(skip)('reasoning-gym', () => {
  const datasets = [
    ['chain_sum', 110, 42],
    ['countdown', 60, 7],
    ['word_sorting', 30, 1],
    ['chain_sum', 1, 3],
  ] as const
  let told: Told[]
  beforeAll(() => {
    told = plain(datasets)
  }, IMPORT_MS)

  test('200 tasks of three data sets have its questions and its scores, and nobody is told what is right', {
    timeout: IMPORT_MS,
  }, async () => {
    const expected = told.slice(0, 200)
    const sources = datasets
      .slice(0, 3)
      .map(([dataset, size, seed]) => collect(reasoningGymTasks({ agent: solver, dataset, size, seed })))
    const tasks = (await Promise.all(sources)).flat()
    expect(tasks.length).toBe(200)
    expect(new Set(tasks.map(({ id }) => id)).size).toBe(200)
    expect(tasks[115]).toMatchObject({
      id: 'countdown/7/5',
      input: { dataset: 'countdown', size: 60, seed: 7, index: 5, instruction: expected[115]!.question },
      metadata: { dataset: 'countdown', difficulty: expect.any(Object) },
    })
    for (const [at, task] of tasks.entries())
      if (at >= 110 && at < 170) expect(JSON.stringify(task)).not.toContain(expected[at]!.right)

    const answering = tasks.map((task, at) => ({ ...task, metadata: { answer: expected[at]!.answer } }))
    const responses = [...(await Runners.runTask(answering, { workerNum: 1 })).values()]
    expect(responses.filter(({ status }) => status !== 'success')).toEqual([])
    const seen = responses.map(({ answer, trajectory, grade }) => {
      const [step, ...more] = trajectory as readonly ActionStep[]
      return { question: step!.observation, answer, score: step!.reward, success: grade?.success, more }
    })
    expect(seen).toEqual(
      expected.map(({ question, answer, score }) => ({ question, answer, score, success: score === 1, more: [] })),
    )
    expect(new Set(expected.map(({ score }) => score)).size).toBeGreaterThan(3)
  })

  test('a full score is a success, and ends the episode', async () => {
    const world = pythonWorld({ kind: 'reasoning-gym', id: 'chain_sum' })
    const { question, right } = told[200]!
    const episode = await begin(world, { size: 1, seed: 3, index: 0 })
    expect(episode.first.observation).toBe(question)
    const scored = { observation: right, reward: 1, done: true, success: true }
    expect(await episode.step(right)).toEqual(scored)
    expect(await episode.step(`${right}1`)).toMatchObject({ done: true, success: false })
    await expect(episode.step(42 as never)).rejects.toMatchObject({ code: 'ACTION_INVALID' })
    episode.close()
  })

  test('what is asked for and not there is named', async () => {
    const world = pythonWorld({ kind: 'reasoning-gym', id: 'chain_sum' })
    const wrong: [input: Parameters<typeof world.reset>[0]['input'], message: string][] = [
      [{ dataset: 'chainsum' }, "raised ValueError: Dataset 'chainsum' not registered"],
      [{ size: 5, index: 7 }, 'raised IndexError: entry 7 does not exist; the data set has 5'],
      [{ config: { min_term: 3 } }, "unexpected keyword argument 'min_term'"],
      [{ index: -1 }, "`index` of a task in 'chain_sum' must be a whole number, 0 or more, it is -1"],
      [{ seed: 3, instruction: 'What is 1 + 1?' }, 'differs from `instruction` of the task'],
    ]
    for (const [input, message] of wrong)
      await expect(begin(world, input)).rejects.toMatchObject({
        code: 'WORLD_FAILED',
        message: expect.stringContaining(message),
      })
    await expect(begin(pythonWorld({ kind: 'reasoning-gym' }), { index: 1 })).rejects.toThrow('has no `dataset`')
    const tasks = reasoningGymTasks({ agent: solver, dataset: 'chainsum', size: 5, seed: 1 })
    await expect(collect(tasks)).rejects.toMatchObject({ code: 'WORLD_FAILED' })
  })
})
