import { Runners, type Step } from 'manyworlds'
import { afterAll, describe, expect, it } from 'vitest'
import { counting, handyman, hastyHandyman } from '../agents/tool-worlds.ts'

afterAll(() => Runners.shutdown())

const submit = 'use_tool[submit] with answer[42]'
const run = (actions: readonly unknown[], tools?: readonly string[]) =>
  Runners.runTask(handyman.task({ instruction: 'Work.', actions }, tools && { tools }))
/** What the policy saw before each of its actions. */
const seen = (steps: readonly Step[]) =>
  steps.filter(({ kind }) => kind === 'action').map(({ observation }) => observation)
const toolSteps = (steps: readonly Step[]) => steps.filter((step) => step.kind === 'tool')

describe('a tool', () => {
  it('is called as text, as JSON or as data, and the environment has its result', async () => {
    const { answer, trajectory } = await run([
      'Let me add.\nuse_tool[add] with a[1] b[2]',
      '```json\n{"name": "add", "parameters": {"a": 3, "b": 4}}\n```',
      { tool: 'add', arguments: { a: 5, b: 6 } },
      'use_tool[later] with text[x [y]]',
      'use_tool[nothing]',
      submit,
    ])
    expect(answer).toBe('42 after 3')
    expect(seen(trajectory)).toEqual([
      'Instruction: Work.\nAvailable tools: none',
      ...['add: 3', 'add: 7', 'add: 11', 'later: "later: x [y]"', 'nothing: undefined'],
    ])
  })

  it('is a step of its own, right before the action that asked for it', async () => {
    const { trajectory } = await run(['use_tool[add] with a[1] b[2]', { tool: 'greedy', arguments: { a: 1 } }, submit])
    expect(trajectory.map(({ kind }) => kind)).toEqual(['tool', 'action', 'tool', 'action', 'tool', 'action'])
    const [add, greedy] = toolSteps(trajectory)
    expect(add).toMatchObject({
      ...{ name: 'add', call: null, arguments: { raw: 'a[1] b[2]', value: { a: '1', b: '2' } }, result: 3 },
      ms: expect.any(Number),
    })
    expect(greedy).toMatchObject({ arguments: { raw: '{"a":1}', value: { a: 1 } }, result: { a: 1 } })
  })

  it('that throws is an observation, and the episode goes on', async () => {
    const { answer, trajectory } = await run(['use_tool[broken]', 'use_tool[broken-later]', submit])
    expect(answer).toBe('42 after 0')
    expect(seen(trajectory).slice(1)).toEqual([
      "tool 'broken' failed: the tool is broken",
      "tool 'broken-later' failed: not even an error",
    ])
    expect(toolSteps(trajectory)[0]).toMatchObject({ error: "tool 'broken' failed: the tool is broken" })
    expect(trajectory.filter(({ kind }) => kind === 'action').map(({ reward }) => reward)).toEqual([0, 0, 1])
  })

  it('that does not exist, or is not allowed, is an observation that lists those that are', async () => {
    const actions = ['use_tool[ad] with a[1]', 'use_tool[broken]', { tool: 'constructor', arguments: {} }, submit]
    const { answer, trajectory } = await run(actions, ['add', 'submit', 'elsewhere'])
    expect(answer).toBe('42 after 0')
    expect(seen(trajectory)).toEqual([
      'Instruction: Work.\nAvailable tools: add, submit, elsewhere',
      `tool 'ad' does not exist; allowed: add, submit; did you mean "add"?`,
      "tool 'broken' is not allowed in this task; allowed: add, submit",
      "tool 'constructor' does not exist; allowed: add, submit",
    ])
    expect(toolSteps(trajectory).map(({ name }) => name)).toEqual(['ad', 'broken', 'constructor', 'submit'])
  })

  it('must be asked for in a form that can be read', async () => {
    const { answer, trajectory } = await run(['The answer is 42.', 'use_tool[add] with a[1', 7, { query: 1 }, submit])
    expect(answer).toBe('42 after 0')
    const form =
      'write use_tool[NAME] with ARGUMENT[VALUE], or {"tool": "NAME", "arguments": {…}}; allowed tools: add, later,'
    expect(seen(trajectory).slice(1)).toEqual([
      expect.stringContaining(`not a tool call: it has no tool call; ${form}`),
      expect.stringContaining("not a tool call: the bracket of 'a' is not closed"),
      expect.stringContaining('not a tool call: it is not an object that names a tool'),
      expect.stringContaining('not a tool call: it is not an object that names a tool'),
    ])
  })

  it('that hangs is given up with its episode', async () => {
    const { status, answer, trajectory } = await Runners.runTask(
      hastyHandyman.task({ instruction: 'Work.', actions: ['use_tool[add] with a[1] b[1]', 'use_tool[hang]'] }),
    )
    expect([status, answer]).toEqual(['success', 'add: 2'])
    expect(trajectory.map(({ kind }) => kind)).toEqual(['tool', 'action'])
  })

  it('that returns what cannot be recorded fails the task', async () => {
    const { error } = await run(['use_tool[live]'])
    expect(error?.code).toBe('ENVIRONMENT_FAULT')
    expect(error?.message).toMatch("cannot record the call of tool 'live'")
  })

  it('that fails leaves candidates as they are, and `error` where observations are not texts', async () => {
    const { answer, trajectory } = await Runners.runTask(counting.task(undefined))
    expect(seen(trajectory)).toEqual([{ count: 0 }, { count: 2 }, { error: "tool 'fail' failed: no" }])
    expect(answer).toEqual({ count: 4 })
    expect(trajectory.at(-1)).toMatchObject({ candidates: [{ tool: 'up' }, { tool: 'fail' }], choice: 0 })
  })
})
