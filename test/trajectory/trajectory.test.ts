import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { checkTrajectory } from '../../src/trajectory/check.ts'
import { callOf, messagesOf, toolCalls } from '../../src/trajectory/conversation.ts'
import type { ModelStep, Step } from '../../src/trajectory/step.ts'
import { tokenRows } from '../../src/trajectory/token-rows.ts'
import { Trajectory, type TrajectoryParts } from '../../src/trajectory/trajectory.ts'
import { trajectoryOf } from '../../src/trajectory/trajectory-of.ts'
import { trajectories } from './arbitrary.ts'
import { made, model, placed, response } from './made.ts'

const written = (trajectory: Trajectory) => Trajectory.fromJSON(JSON.parse(JSON.stringify(trajectory)))
describe('any trajectory', () => {
  test('holds what it promises', () => {
    fc.assert(fc.property(trajectories, (trajectory) => void expect(checkTrajectory(trajectory)).toEqual([])))
  })

  test('comes back from JSON exactly as it was', () => {
    fc.assert(
      fc.property(trajectories, (trajectory) => {
        const back = written(trajectory)
        expect(back).toStrictEqual(trajectory)
        expect(JSON.stringify(back)).toBe(JSON.stringify(trajectory))
      }),
    )
  })

  test('has a call for every result of a tool', () => {
    let resolved = 0
    fc.assert(
      fc.property(trajectories, (trajectory) => {
        const calls = toolCalls(trajectory)
        for (const step of trajectory.steps) {
          if (step.kind !== 'tool' || step.call === null) continue
          expect(callOf(trajectory.steps, step)).toMatchObject({ id: step.call.id, name: step.name })
          expect(calls.some(({ id, result }) => id === step.call!.id && result !== undefined)).toBe(true)
          resolved++
        }
      }),
      { numRuns: 500 },
    )
    expect(resolved).toBeGreaterThan(20)
  })

  test('can be taken into another as a sub-task, and both hold what they promise', () => {
    fc.assert(
      fc.property(trajectories, trajectories, trajectories, (parent, first, second) => {
        const subTasks = [first, second].map((one, place) => new Trajectory({ ...one, id: `q7@2/#${place + 1}` }))
        const whole = made(parent.steps, {}, { subTasks })
        expect(checkTrajectory(whole)).toEqual([])
        expect(whole.steps.length).toBe([parent, first, second].reduce((sum, { steps }) => sum + steps.length, 0))
        const rows = [parent, first, second].flatMap((one) => tokenRows(one).rows)
        expect(tokenRows(whole).rows.map(({ ids, mask }) => [ids, mask])).toEqual(
          rows.map(({ ids, mask }) => [ids, mask]),
        )
        const tasks = whole.branches.filter(({ parent }) => parent?.why === 'subtask').map(({ task }) => task)
        expect(tasks).toEqual(['q7@2/#1', 'q7@2/#2'])
        expect(written(whole)).toStrictEqual(whole)
      }),
    )
  })
})

test('messages of a step are those of its request and its reply, with what it keeps of an earlier one', () => {
  const user = (content: string) => ({ role: 'user' as const, content })
  const steps = placed(
    model({ request: { from: null, keep: 0, added: [user('a'), user('b')], tools: '', wire: '' } }),
    model({ request: { from: 0, keep: 3, added: [user('c')], tools: '', wire: '' } }),
    model({ request: { from: 1, keep: 1, added: [user('d')], tools: '', wire: '' } }),
  ) as (Step & ModelStep)[]
  const contents = steps.map((step) => messagesOf(steps, step).map(({ content }) => content))
  expect(contents).toEqual([
    ['a', 'b', 'ho'],
    ['a', 'b', 'ho', 'c', 'ho'],
    ['a', 'd', 'ho'],
  ])
})

describe('the parts of a response', () => {
  test('are those of its trajectory', () => {
    const around = {
      run: { id: 'nightly', seed: 3 },
      task: { input: 'i', metadata: { split: 'test', level: 2 } },
      groupSize: 4,
    }
    expect(made([], { digest: 'd' }, around)).toMatchObject({
      ...{ schema: 2, id: 'q7@2', run: 'nightly', task: 'q7', agent: 'clerk', split: 'test', visit: 0, rollout: 2 },
      ...{ group: { id: 'q7', size: 4 }, attempt: 1, seed: 3, input: 'i', answer: 12, ms: 1500, digest: 'd' },
      ...{ ending: { kind: 'terminated' }, episode: null, grade: null, meta: { split: 'test', level: 2 } },
      branches: [{ id: 0, agent: 'clerk', parent: null }],
    })
    const bare = trajectoryOf({ ...response, id: 'a@9', groupId: undefined!, rollout: undefined! }, [])
    expect(bare).toMatchObject({ task: 'a@9', rollout: 1, run: null, seed: null, group: null, split: null })
    expect('input' in bare).toBe(false)
  })

  test.each([
    ['failed', 'TASK_THREW', 'failed'],
    ['timeout', 'TASK_TIMEOUT', 'failed'],
    ['crashed', 'WORKER_CRASHED', 'failed'],
    ['cancelled', 'TASK_CANCELLED', 'cancelled'],
  ] as const)('%s is an ending with its error, and without an answer', (status, code, kind) => {
    const error = { code, name: 'E', message: 'm' }
    const trajectory = made([], { status, error, answer: undefined })
    expect(trajectory.ending).toEqual({ kind, error })
    expect('answer' in trajectory).toBe(false)
    expect(checkTrajectory(trajectory)).toEqual([])
  })
})

describe('the shape of the Python recipe', () => {
  test('has its fields, in camelCase', () => {
    const steps = placed(
      { kind: 'note', action: 'a', observation: 'o', reward: 1, usage: { outputTokens: 7 } },
      model({
        ids: [1, 2, 3],
        reply: { role: 'assistant', content: '', calls: [{ id: 'c', name: 't', raw: '{}' }], wire: '' },
      }),
      {
        kind: 'tool',
        call: { step: 1, position: 0, id: 'c' },
        name: 't',
        arguments: { raw: '{}', value: {} },
        result: 5,
        ms: 1,
      },
      { kind: 'tool', call: null, name: 'u', arguments: { raw: 'x' }, error: { message: 'no' }, ms: 1 },
    )
    const grade = { reward: 1, success: true, grader: { name: 'g' } }
    expect(made(steps, { grade }, { task: { input: 0, metadata: { a: 1 } } }).toSeedShape()).toEqual({
      taskId: 'q7',
      agentId: 'clerk',
      steps: [
        { step: 0, action: 'a', observation: 'o', tokens: 7, reward: 1 },
        { step: 1, action: { content: '', calls: [{ id: 'c', name: 't', raw: '{}' }] }, observation: 'hi', tokens: 3 },
        { step: 2, action: { tool: 't', arguments: {} }, observation: 5, tokens: 0 },
        { step: 3, action: { tool: 'u', arguments: 'x' }, observation: { error: { message: 'no' } }, tokens: 0 },
      ],
      finalResult: 12,
      success: true,
      tokenCount: 10,
      executionTime: 1.5,
      metadata: { a: 1 },
    })
  })

  test('does not make up a success that nobody told', () => {
    expect(made([]).toSeedShape().success).toBeNull()
    const episode = { ending: { kind: 'terminated' as const }, finalObservation: 'end', reward: 0, success: false }
    expect(made([], { episode, answer: undefined }).toSeedShape()).toMatchObject({ success: false, finalResult: 'end' })
  })
})

describe('what is broken is told in plain words', () => {
  const whole = made(
    placed(
      model({ reply: { role: 'assistant', content: '', calls: [{ id: 'c', name: 't', raw: '{}' }], wire: '' } }),
      { kind: 'tool', call: { step: 0, position: 0, id: 'c' }, name: 't', arguments: { raw: '{}' }, result: 5, ms: 1 },
      {
        kind: 'action',
        observation: 0,
        candidates: ['a', 'b'],
        action: 'b',
        choice: 1,
        logProb: -1,
        mode: 'sample',
        policy: null,
        reward: 1,
      },
      model({ from: 0 }),
    ),
  )
  const changed = (index: number, more: object) => ({
    ...whole,
    steps: whole.steps.map((step) => (step.index === index ? ({ ...step, ...more } as Step) : step)),
  })
  const tokens = (more: object) => changed(3, { tokens: { ...(whole.steps[3] as ModelStep).tokens, ...more } })
  const request = (more: object) => changed(3, { request: { ...(whole.steps[3] as ModelStep).request, ...more } })
  const branches = (...more: object[]) => ({ ...whole, branches: [...whole.branches, ...more] }) as TrajectoryParts

  const child = { id: 1, agent: '', parent: { branch: 0, step: null, why: 'drift' } }

  test.each<[TrajectoryParts, string]>([
    [{ ...whole, rollout: 0 }, '`rollout` must be at least 1, it is 0'],
    [{ ...whole, attempt: 0 }, '`attempt` must be at least 1, it is 0'],
    [{ ...whole, ms: -1 }, '`ms` must be a number of at least 0, it is -1'],
    [{ ...whole, group: { id: 'g', size: 0 } }, '`group.size` must be at least 1, it is 0'],
    [{ ...whole, steps: [], branches: [] }, 'the first branch must be number 0, without a parent'],
    [changed(2, { branch: 4 }), 'step 2 is in branch 4, which is not in `branches`'],
    [branches(child, child), 'two branches have the same number'],
    [branches({ id: 1, agent: '', parent: null }), 'branch 1 has no parent; only branch 0 may have none'],
    [branches({ id: 1, agent: '', parent: { branch: 1, step: null, why: 'drift' } }), 'branch 1 is its own ancestor'],
    [
      branches({ id: 1, agent: '', parent: { branch: 9, step: null, why: 'drift' } }),
      'the parent of branch 1 is branch 9, which is not in `branches`',
    ],
    [
      branches({ id: 1, agent: '', parent: { branch: 0, step: 99, why: 'drift' } }),
      'branch 1 starts after step 99, which does not exist',
    ],
    [changed(1, { index: 7 }), 'step 7 is at position 1; steps must be numbered from 0, in order'],
    [
      changed(1, { call: { step: 0, position: 1, id: 'c' } }),
      'step 1 has the result of a call that step 0 did not make',
    ],
    [
      changed(1, { call: { step: 0, position: 0, id: 'd' } }),
      'step 1 has the result of a call that step 0 did not make',
    ],
    [
      changed(1, { call: { step: 3, position: 0, id: 'c' } }),
      'step 1 has the result of a call that step 3 did not make',
    ],
    [request({ from: 1 }), 'step 3 continues the conversation of step 1, which is not an earlier model step'],
    [request({ from: 3 }), 'step 3 continues the conversation of step 3, which is not an earlier model step'],
    [request({ from: 0, keep: 3 }), 'step 3 keeps 3 messages of step 0, which has only 2'],
    [
      request({ added: [{ role: 'tool', content: '', callId: 'x' }] }),
      "step 3 has a message with the result of call 'x', which no model made",
    ],
    [tokens({ from: 2 }), 'step 3 continues the tokens of step 2, which is not an earlier step with tokens'],
    [tokens({ from: 3 }), 'step 3 continues the tokens of step 3, which is not an earlier step with tokens'],
    [tokens({ tokenizer: 'u' }), 'step 3 continues the tokens of step 0, which has another tokenizer'],
    [tokens({ tail: new Int32Array([-1]) }), 'step 3 has a token id below 0'],
    [tokens({ logProbs: new Float64Array(1) }), 'step 3 has 1 log-probabilities for 2 completion ids'],
    [
      tokens({ logProbs: new Float64Array([-1, Number.NaN]) }),
      'step 3 has an impossible log-probability: above 0, infinite or NaN',
    ],
    [changed(2, { choice: 2 }), 'step 2 chose candidate 2 of 2'],
    [changed(2, { choice: 0 }), 'step 2 chose candidate 0, but its action differs from it'],
    [changed(2, { logProb: 0.5 }), 'step 2 has the impossible log-probability 0.5'],
    [changed(2, { reward: Number.NaN }), 'step 2 has the reward NaN, which is not finite'],
    [
      { ...whole, grade: { reward: 1 / 0, success: null, grader: { name: 'g' } } },
      'the grade has the reward Infinity, which is not finite',
    ],
    [
      {
        ...whole,
        grade: { reward: 0, success: null, grader: { name: 'g' }, error: { code: 'GRADER_THREW', message: '' } },
      },
      'grading failed, but the grade has a reward',
    ],
    [
      { ...whole, episode: { reward: Number.NaN, success: null } },
      'the reward of the episode is NaN, which is not finite',
    ],
    // of another type than it should be
    [{ ...whole, ms: '1' as never }, '`ms` must be a number'],
    [{ ...whole, steps: {} as never }, '`steps` must be a list'],
    [changed(0, { kind: 'dream' }), '`steps[0].kind` must be one of note, action, tool, model'],
    [tokens({ tail: [1] }), '`steps[3].tokens.tail` must be an Int32Array'],
    [changed(1, { arguments: null }), '`steps[1].arguments` must be an object'],
    [{ ...whole, split: 'dev' as never }, "`split` must be one of 'train', 'validation', 'test'"],
  ])('%#: $1', (broken, words) => {
    expect(checkTrajectory(whole)).toEqual([])
    expect(checkTrajectory(broken)).toEqual([words])
  })

  test('text that is no trajectory, or one of another schema, is one clear error', () => {
    const json = whole.toJSON()
    const refused = (value: unknown) => expect(() => Trajectory.fromJSON(value))
    const code = expect.objectContaining({ code: 'TRAJECTORY_INVALID' })
    refused('{}').toThrow(code)
    refused(null).toThrow('a trajectory must be an object')
    refused({ ...json, schema: 3 }).toThrow('schema 3; this version of manyworlds reads schema 2')
    refused({ ...json, steps: 5 }).toThrow('malformed trajectory: `steps` must be a list')
    refused({ ...json, answer: { $: 'Unheard' } }).toThrow('malformed trajectory: {"$":"Unheard"} is not a known type')
    expect(() => made([], { answer: () => {} }).toJSON()).toThrow("cannot write the trajectory of task 'q7@2' as JSON")
  })
})
