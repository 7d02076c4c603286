import { setTimeout as sleep } from 'node:timers/promises'
import { Runners, type TaskLike } from 'manyworlds'
import { afterAll, describe, expect, test } from 'vitest'
import { echo, sleeper } from '../agents/basics.ts'
import { prepared, printsMuch, seer, summer, talker } from '../agents/context.ts'
import { blocker, deaf, succeedsAt, thrower } from '../agents/failing.ts'
import { confuses, finds } from '../agents/subtasks.ts'

afterAll(() => Runners.shutdown())
const statuses = (responses: Map<string, { status: string }>) => [...responses.values()].map(({ status }) => status)

describe('what a task sees', () => {
  test('its own data, and nothing that was not given', async () => {
    const given = { tools: ['search'], metadata: { source: 'test' }, groupId: 'g' }
    const tasks = [seer.task('x', { id: 'full', groundTruth: 42, ...given }), seer.task('y')]
    const responses = await Runners.runTask(tasks, { runId: 'run-7' })
    expect(responses.get('full')?.answer).toMatchObject({
      input: 'x',
      task: { id: 'full', ...given },
      attempt: 1,
      key: 'run-7/full',
      params: { tone: 'calm' },
      previous: undefined,
      results: new Map(),
      aborted: false,
    })
    expect(Object.keys(responses.get('full')!.answer!.task)).toEqual(['id', ...Object.keys(given)])
    expect(responses.get('#2')?.answer).toMatchObject({ task: { id: '#2' }, key: 'run-7/#2' })
    expect(Object.keys(responses.get('#2')!.answer!.task)).toEqual(['id'])
  })

  test('other params, where the task asks for them', async () => {
    const responses = await Runners.runTask([seer.task(1), seer.withParams({ tone: 'loud' }).task(1), seer.task(1)])
    expect([...responses.values()].map(({ answer }) => answer?.params.tone)).toEqual(['calm', 'loud', 'calm'])
  })

  test('random numbers that depend on the seed and the task alone', async () => {
    const draw = async (config: object, id = 'a') =>
      (await Runners.runTask(seer.task(0, { id }), config)).answer!.random
    const first = await draw({ seed: 1, workerNum: 1 })
    expect(first).toEqual(await draw({ seed: 1, workerNum: 2, runId: 'other' }))
    expect(first[0]).not.toBe(first[1])
    expect(first).not.toEqual(await draw({ seed: 2 }))
    expect(first).not.toEqual(await draw({ seed: 1 }, 'b'))
    for (const number of first) expect(number).toBeGreaterThanOrEqual(0)
    for (const number of first) expect(number).toBeLessThan(1)
  })
})

describe('sub-tasks', () => {
  test.each(['context', 'Runners'] as const)(
    'are found by the ids they were given, and by their whole ids: %s',
    async (by) => {
      const { answer } = await Runners.runTask(finds.task(by, { id: 'p' }))
      expect(answer).toEqual({
        given: [2, 4],
        whole: [2, 4, 6],
        has: [true, true, false],
        keys: ['p/one', 'p/two', 'p/1.3'],
      })
    },
  )

  test('the id that was given goes before a whole id that looks the same', async () => {
    expect((await Runners.runTask(confuses.task(undefined, { id: 'p' }))).answer).toEqual([2, 4])
  })
})

test('what tasks print and record is kept with each, also when they run side by side', async () => {
  const names = ['ann', 'bob', 'cid']
  const tasks = names.map((name) => talker.task(name, { id: name }))
  const responses = await Runners.runTask(tasks, { workerNum: 1, concurrency: 3 })
  for (const name of names) {
    const { logs, trajectory, usage } = responses.get(name)!
    const turns = [0, 1, 2].flatMap((turn) => [
      `${name} says ${turn}`,
      `${name} warns ${turn}`,
      `${name} { turn: ${turn} }`,
    ])
    expect(logs).toEqual([...turns, 'two', 'lines'])
    expect(trajectory).toMatchObject(
      [0, 1, 2].map((turn) => ({
        index: turn,
        kind: 'note',
        action: turn,
        observation: name,
        reward: 0.5,
        data: { mine: [turn] },
      })),
    )
    expect(trajectory.every(({ atMs }) => atMs >= 0)).toBe(true)
    expect(usage).toEqual({ inputTokens: 30, costUsd: 0.75 })
  }
})

test('of a line that is too long, the beginning is kept', async () => {
  const { logs } = await Runners.runTask(printsMuch.task(1e6), { workerNum: 1 })
  expect(logs.map((line) => line.slice(0, 20))).toEqual(['first', 'x'.repeat(20), '… (more than 1000 li'])
  expect(logs[1]).toHaveLength(262_144 - 'first'.length)
})

describe('attempts', () => {
  const quick = { backoffMs: 1, backoffMaxMs: 5 }

  test('a task that fails is tried again, as the same task', async () => {
    const { answer, attempts, trajectory, logs } = await Runners.runTask(succeedsAt.task(3), {
      ...quick,
      maxAttempts: 5,
    })
    expect(attempts).toBe(3)
    expect(answer?.attempt).toBe(3)
    // What the response shows is the last attempt.
    expect(trajectory.map(({ action }) => action)).toEqual(['attempt 3'])
    expect(logs).toEqual(['attempt 3'])
    const config = { ...quick, runId: 'r', seed: 5 }
    const once = await Runners.runTask(succeedsAt.task(1, { id: 'a' }), config)
    const thrice = await Runners.runTask(succeedsAt.task(3, { id: 'a', maxAttempts: 3 }), config)
    expect(thrice.answer?.key).toBe(once.answer?.key)
    expect(thrice.answer?.random, 'the same numbers in every attempt').toBe(once.answer?.random)
  })

  test('no more often than it may, and not once more by default', async () => {
    const tasks = [succeedsAt.task(9, { id: 'own', maxAttempts: 2 }), succeedsAt.task(9, { id: 'run' })]
    const responses = await Runners.runTask(tasks, { ...quick, maxAttempts: 3 })
    expect([...responses.values()].map(({ status, attempts }) => [status, attempts])).toEqual([
      ['failed', 2],
      ['failed', 3],
    ])
    expect(await Runners.runTask(succeedsAt.task(2))).toMatchObject({ status: 'failed', attempts: 1 })
  })
})

describe('time', () => {
  test('a task that takes too long is a timeout, and its neighbours are not', async () => {
    const tasks = [
      sleeper.task(60_000, { id: 'slow' }),
      sleeper.task(60_000, { id: 'own', timeoutMs: 50 }),
      echo.task(1, { timeoutMs: 30_000 }),
    ]
    const responses = await Runners.runTask(tasks, { timeoutMs: 300, workerNum: 1 })
    expect(statuses(responses)).toEqual(['timeout', 'timeout', 'success'])
    expect(responses.get('slow')?.error).toMatchObject({ code: 'TASK_TIMEOUT', name: 'TimeoutError' })
    expect(responses.get('slow')?.error?.message).toContain('300 ms')
    expect(responses.get('own')?.error?.message).toContain('50 ms')
  })

  test('waiting for a slot does not count', async () => {
    // The last one waits for longer than it may take; each by itself has time to spare.
    const tasks = Array.from({ length: 6 }, () => sleeper.task(600))
    const responses = await Runners.runTask(tasks, { timeoutMs: 2500, workerNum: 1, concurrency: 1 })
    expect(statuses(responses)).toEqual(Array(6).fill('success'))
  })

  test('one that does not listen, or blocks its process, is a timeout too', async () => {
    const tasks: TaskLike[] = [deaf.task(0, { id: 'deaf' }), blocker.task(0, { id: 'blocker' })]
    const responses = await Runners.runTask(tasks, { timeoutMs: 200, workerNum: 2, concurrency: 1 })
    expect(statuses(responses)).toEqual(['timeout', 'timeout'])
    expect(responses.get('blocker')?.error?.code).toBe('TASK_BLOCKED_WORKER')
  })

  test('a timeout may be tried again', async () => {
    const config = { timeoutMs: 50, maxAttempts: 2, backoffMs: 1 }
    expect(await Runners.runTask(sleeper.task(60_000), config)).toMatchObject({ status: 'timeout', attempts: 2 })
  })

  test('at the deadline of the run, what is not done is cancelled', async () => {
    const tasks = [echo.task(1), sleeper.task(60_000), sleeper.task(60_000)]
    const config = { workerNum: 1, concurrency: 2 }
    // The worker is there: the deadline is for the tasks.
    await Runners.runTask(echo.task(0), config)
    const responses = await Runners.runTask(tasks, { ...config, deadlineMs: 4000 })
    expect(statuses(responses)).toEqual(['success', 'cancelled', 'cancelled'])
    expect([...responses.values()].map(({ error }) => error?.code)).toEqual([undefined, 'RUN_DEADLINE', 'RUN_DEADLINE'])
  })

  test('a signal cancels what is not done, in the middle of the run', async () => {
    const controller = new AbortController()
    const tasks = [echo.task(1, { id: 'done' }), ...Array.from({ length: 5 }, () => sleeper.task(60_000))]
    const seen: string[] = []
    for await (const { id, status, error } of Runners.streamTask(tasks, {
      signal: controller.signal,
      concurrency: 2,
    })) {
      seen.push(`${id} ${status} ${error?.code ?? ''}`)
      if (id === 'done') controller.abort()
    }
    expect(seen[0]).toBe('done success ')
    expect(seen.slice(1).sort()).toEqual([2, 3, 4, 5, 6].map((n) => `#${n} cancelled TASK_CANCELLED`))
  })
})

describe('setup', () => {
  test('runs once per worker, before its first task', async () => {
    const tasks = Array.from({ length: 40 }, (_, input) => prepared.task(input))
    const responses = await Runners.runTask(tasks, { workerNum: 2, concurrency: 4 })
    const states = [...responses.values()].map(({ answer, worker }) => ({ ...answer, ran: worker?.pid }))
    expect(states.every(({ pid, ran, setups, signal }) => pid === ran && setups === 1 && signal)).toBe(true)
  })

  test('that fails is the failure of the tasks that needed it, of no others', async () => {
    const bad = prepared.withParams({ fail: 'no such model' })
    const responses = await Runners.runTask([bad.task(1), echo.task(2), bad.task(3)], { workerNum: 1 })
    expect(statuses(responses)).toEqual(['failed', 'success', 'failed'])
    const { error } = responses.get('#1')!
    expect(error?.code).toBe('SETUP_FAILED')
    expect(error?.message).toBe("setup of agent 'prepared' failed: no such model")
    expect(error?.stack).toMatch(/context\.ts:\d+/)
  })
})

describe('one after the other', () => {
  const config = { sequenceDependent: true, workerNum: 2 }

  test('each has its own input and the answer of the one before', async () => {
    const responses = await Runners.runTask(
      [1, 2, 3, 4].map((input) => summer.task(input)),
      config,
    )
    expect([...responses.values()].map(({ answer }) => answer)).toEqual([1, 3, 6, 10])
  })

  test('after a failure the rest is cancelled and says why', async () => {
    const tasks = [1, -1, 3, 4].map((input, index) => summer.task(input, { id: `t${index}` }))
    const responses = await Runners.runTask(tasks, config)
    expect(statuses(responses)).toEqual(['success', 'failed', 'cancelled', 'cancelled'])
    const { error, attempts, worker } = responses.get('t3')!
    expect(error).toMatchObject({ code: 'DEPENDENCY_FAILED' })
    expect(error?.message).toContain("'t1'")
    expect([attempts, worker]).toEqual([0, undefined])
  })

  test('also from a generator, which is not read ahead and not read on', async () => {
    let yielded = 0
    let closed = false
    async function* source() {
      try {
        for (const input of [1, 2, -1, 4, 5]) {
          yielded++
          yield summer.task(input)
        }
      } finally {
        closed = true
      }
    }
    const responses = await Runners.runTask(source(), config)
    expect(statuses(responses).slice(0, 3)).toEqual(['success', 'success', 'failed'])
    expect(yielded).toBeLessThan(5)
    expect(closed).toBe(true)
  })

  test('an answer of nothing is previous too', async () => {
    const responses = await Runners.runTask([echo.task(null), seer.task(0), echo.task(0), seer.task(0)], config)
    expect(responses.get('#2')?.answer).toMatchObject({ previous: null })
    expect(responses.get('#4')?.answer).toMatchObject({ previous: 0 })
  })
})

describe('dependsOn', () => {
  test('a task runs after those it names, with their answers', async () => {
    const responses = await Runners.runTask([
      seer.task(0, { id: 'last', dependsOn: ['slow', 'map'] }),
      sleeper.task(50, { id: 'slow' }),
      echo.task(new Map([['a', 1]]), { id: 'map', dependsOn: ['slow'] }),
    ])
    expect([...responses.keys()]).toEqual(['last', 'slow', 'map'])
    const expected = new Map<string, unknown>([
      ['slow', 50],
      ['map', new Map([['a', 1]])],
    ])
    expect(responses.get('last')?.answer).toMatchObject({ results: expected })
  })

  test('a failure cancels those that need it, however far, and no others', async () => {
    const tasks: TaskLike[] = [
      thrower.task('string', { id: 'bad' }),
      echo.task(1, { id: 'needs', dependsOn: ['bad', 'fine'] }),
      echo.task(1, { id: 'far', dependsOn: ['needs'] }),
      echo.task(1, { id: 'fine' }),
      echo.task(1, { id: 'apart', dependsOn: ['fine'] }),
    ]
    const responses = await Runners.runTask(tasks)
    expect(statuses(responses)).toEqual(['failed', 'cancelled', 'cancelled', 'success', 'success'])
    expect(responses.get('needs')?.error?.message).toContain("'bad'")
    expect(responses.get('far')?.error?.message).toContain("'needs'")
  })

  test('a signal ends a graph with all of its tasks answered', async () => {
    const controller = new AbortController()
    const tasks = [sleeper.task(60_000, { id: 'a' }), echo.task(1, { id: 'b', dependsOn: ['a'] })]
    const running = Runners.runTask(tasks, { signal: controller.signal })
    await sleep(300)
    controller.abort()
    expect(statuses(await running)).toEqual(['cancelled', 'cancelled'])
  })
})
