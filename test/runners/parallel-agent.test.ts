import { Runners } from 'manyworlds'
import { afterAll, describe, expect, test } from 'vitest'
import * as groups from '../agents/groups.ts'

afterAll(() => Runners.shutdown())
const narrow = { workerNum: 1, concurrency: 1 }

describe('several agents on one input', () => {
  test('answer with the results of each, by name', async () => {
    const { answer } = await Runners.runTask(groups.parallelSearch.task('cats'))
    expect(answer).toEqual({
      google_search: { success: true, answer: 'google: cats' },
      bing_search: { success: true, answer: { bing: 'cats' } },
      wiki: { success: true, answer: [4] },
    })
  })

  test('answer with the policyInfo of what their aggregate makes of it', async () => {
    const { answer, agentName } = await Runners.runTask({ input: 'cats', agent: groups.aggregated })
    expect(agentName).toBe('parallel(google_search, bing_search, wiki)')
    expect(answer).toBe(`${agentName}: 3 of 3, google: cats`)
  })

  test('are an agent like others: many tasks, beside tasks of others', async () => {
    const tasks = ['a', 'bb', 'ccc'].map((input) => groups.parallelSearch.task(input, { id: input }))
    const responses = await Runners.runTask([...tasks, groups.chain.task('two words')], { workerNum: 2 })
    expect([...responses.values()].map(({ success }) => success)).toEqual([true, true, true, true])
    expect(responses.get('ccc')?.answer).toMatchObject({ wiki: { answer: [3] } })
  })

  test.each([
    ['in one worker', groups.oneFails],
    ['spread', groups.oneFailsSpread],
  ])('one of them failing is a value: %s', async (_how, agent) => {
    const { status, answer } = await Runners.runTask(agent.task('cats'))
    expect(status).toBe('success')
    expect(answer).toMatchObject({
      google_search: { success: true, answer: 'google: cats' },
      fails: { success: false, error: { message: 'no cats' } },
      'fails-oddly': { success: false, error: expect.any(Error) },
    })
    expect(answer?.['fails-oddly'].error?.message).toContain('just text')
  })

  test.each([
    ['in one worker', groups.allFail],
    ['spread', groups.allFailSpread],
  ])('all of them failing is a failure that names each: %s', async (_how, agent) => {
    const { status, error } = await Runners.runTask(agent.task('cats'))
    expect([status, error?.code]).toEqual(['failed', 'ALL_SUBAGENTS_FAILED'])
    for (const words of [`'${agent.name}'`, 'all 2', 'fails: no cats', 'fails-oddly: '])
      expect(error?.message).toContain(words)
  })

  test('an aggregate that fails is a failure like any', async () => {
    const { error } = await Runners.runTask(groups.aggregateFails.task('cats'))
    expect(error).toMatchObject({ code: 'TASK_THREW', name: 'TypeError', message: 'cannot add these up' })
  })

  test.each([
    ['in one worker', groups.ownInputs],
    ['spread', groups.ownInputsSpread],
  ])('none sees what another does to the input: %s', async (_how, agent) => {
    const { answer } = await Runners.runTask(agent.task({ list: [] }))
    expect(answer?.['greedy-a'].answer).toEqual(['greedy-a'])
    expect(answer?.['greedy-b'].answer).toEqual(['greedy-b'])
  })
})

describe('each has a context of its own', () => {
  const look = async (agent: typeof groups.contexts, first = 'soon', id = 't') => {
    const response = await Runners.runTask(agent.task(first, { id }), { ...narrow, runId: 'r', seed: 3 })
    const { soon, late } = response.answer!
    return { soon: soon.answer!, late: late.answer!, response }
  }

  test('params, set-up, key and steps', async () => {
    const { soon, late, response } = await look(groups.contexts)
    expect(soon).toMatchObject({ tone: 'calm', key: 'r/t/soon', id: 't', size: 1 })
    expect(late).toMatchObject({ tone: 'calm', key: 'r/t/late', id: 't', size: 1 })
    expect(response.trajectory).toMatchObject([
      { agent: 'soon', action: 'look' },
      { agent: 'late', action: 'look' },
    ])
    expect(response.logs).toEqual(['soon', 'late'])
  })

  test('set up once for the same params in a worker, and anew for others, whatever they are made of', async () => {
    const first = await look(groups.contexts)
    const second = await look(groups.contexts, 'soon', 'u')
    expect(second.soon.setups).toBe(first.soon.setups)
    const other = await look(groups.contextsOtherParams as unknown as typeof groups.contexts)
    expect(other.soon).toMatchObject({ tone: 'loud', size: 2 })
    expect(other.soon.setups).toBeGreaterThan(first.soon.setups)
    expect(other.late.setups, 'the one whose params are the same').toBe(first.late.setups)
  })

  test('random numbers that do not depend on who draws first', async () => {
    const { soon, late } = await look(groups.contexts)
    expect(soon.random).not.toEqual(late.random)
    const again = await look(groups.contexts, 'late')
    expect([again.soon.random, again.late.random]).toEqual([soon.random, late.random])
  })
})

describe('spread over the workers', () => {
  test('three deep, with a single worker that has a single slot', async () => {
    const { answer, error } = await Runners.runTask(groups.deepSpread.task(1), narrow)
    expect(error).toBeUndefined()
    expect(answer).toEqual({
      middle: {
        success: true,
        answer: {
          inner: { success: true, answer: { leaf: { success: true, answer: 2 } } },
          leaf: { success: true, answer: 2 },
        },
      },
      leaf: { success: true, answer: 2 },
    })
  })

  test('many at once, with a single worker that has a single slot', async () => {
    const tasks = Array.from({ length: 10 }, (_, input) => groups.deepSpread.task(input))
    const responses = await Runners.runTask(tasks, narrow)
    expect([...responses.values()].map(({ answer }) => answer?.leaf.answer)).toEqual(
      tasks.map(({ input }) => input + 1),
    )
  })

  test('they run at the same time, as tasks with ids that tell whose they are', async () => {
    const meet = async () => {
      const { answer } = await Runners.runTask(groups.meeting.task(0, { id: 'm' }), { workerNum: 2, concurrency: 1 })
      const [a, b] = [answer?.['meet-a'].answer, answer?.['meet-b'].answer]
      expect([a?.id, b?.id]).toEqual(['m/meet-a', 'm/meet-b'])
      return new Set([a?.worker, b?.worker]).size
    }
    // The first worker may have done both before the second is there.
    await expect.poll(meet, { timeout: 30_000 }).toBe(2)
  })

  test('groups in groups also run in one worker', async () => {
    const { answer } = await Runners.runTask(groups.deepHere.task(1))
    expect(answer).toMatchObject({ 'inner-here': { answer: { leaf: { answer: 2 } } }, leaf: { answer: 2 } })
  })

  test('cancelling the group cancels its parts', async () => {
    const config = { ...narrow, timeoutMs: 300 }
    const { status } = await Runners.runTask(groups.waiting.task(0), config)
    expect(status).toBe('timeout')
    // Its only slot is free again.
    expect((await Runners.runTask(groups.deepHere.task(1), narrow)).status).toBe('success')
  })
})

describe('one agent after the other', () => {
  test('each takes the answer of the one before', async () => {
    expect((await Runners.runTask(groups.chain.task('two words'))).answer).toBe(true)
    expect((await Runners.runTask(groups.chainOfGroups.task('three words here'))).answer).toBe(3)
  })

  test('the first failure is the failure', async () => {
    const { status, error } = await Runners.runTask(groups.chain.task('one two three'))
    expect(status).toBe('failed')
    expect(error).toMatchObject({ code: 'TASK_THREW', name: 'RangeError', message: '3 is odd' })
  })

  test('the log says which link failed, and what it was given by whom', async () => {
    const { logs } = await Runners.runTask(groups.chain.task('one two three'))
    expect(logs).toEqual(["'chain': link 3 of 3, 'even', failed; it was given a number, the answer of 'count'"])
    const { logs: first } = await Runners.runTask(groups.chain.task({ words: 3 } as never))
    expect(first).toEqual([
      "'chain': link 1 of 3, 'words', failed; it was given an object with the keys words, the input of the task",
    ])
  })

  test('a chain whose first agent needs no input needs none', async () => {
    expect((await Runners.runTask(groups.chainWithoutInput.task())).answer).toBe(2)
  })

  test('an aggregate sees all of them', async () => {
    const { answer } = await Runners.runTask(groups.chainAggregated.task('a b'))
    expect(answer).toEqual(['serial(words, count)', ['a', 'b'], 2])
  })
})
