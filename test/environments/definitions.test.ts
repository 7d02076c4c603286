import { defineEnvironment, fixedPolicy, randomPolicy, stepAgent } from 'manyworlds/agents'
import { describe, expect, it } from 'vitest'
import { expectOneError, runScript } from '../support/run-script.ts'

const good = {
  name: 'good',
  reset: () => ({ state: 0, observation: 0 }),
  step: () => ({ observation: 0, reward: 0, done: true }),
}
const environment = defineEnvironment(good)

describe('an environment that is none is refused where it is defined', () => {
  it.each([
    [undefined, 'give one object: defineEnvironment({'],
    [{}, '`name` must be a non-empty string'],
    [{ ...good, name: '' }, '`name` must be a non-empty string'],
    [{ ...good, reset: undefined }, "`reset` of environment 'good' must be a function, it is undefined"],
    [{ ...good, step: {} }, "`step` of environment 'good' must be a function, it is object"],
    [{ ...good, close: null }, "`close` of environment 'good' must be a function, it is null"],
    [
      { ...good, resets: 1 },
      "unknown key 'resets' in environment 'good'; allowed: name, setup, reset, tools, step, close, grade; did",
    ],
    [{ ...good, grade: 'exact' }, "`grade` of environment 'good' must be a function or a grader, it is string"],
    [{ ...good, tools: [() => 1] }, "`tools` of environment 'good' must be an object"],
    [
      { ...good, tools: { search: 'web' } },
      "tool 'search' of environment 'good' must be a function, or { description,",
    ],
    [{ ...good, tools: { search: { description: 'x' } } }, "tool 'search' of environment 'good' must be a function"],
  ])('%j', (definition, message) => {
    expect(() => defineEnvironment(definition as never)).toThrow(
      expect.objectContaining({ code: 'ENVIRONMENT_INVALID', message: expect.stringContaining(message) }),
    )
  })

  it('can be called in a test of its own, without any of the rest', async () => {
    expect(await environment.reset({ id: 'a', input: 1 }, {} as never)).toEqual({ state: 0, observation: 0 })
  })
})

describe('a step agent that is none is refused where it is defined', () => {
  const agent = { name: 'agent', environment, policy: randomPolicy() }
  it.each([
    [undefined, 'give one object: stepAgent({'],
    [{ ...agent, name: 5 }, '`name` must be a non-empty string'],
    [{ ...agent, maxStep: 5 }, `unknown key 'maxStep' in agent 'agent'`],
    [{ ...agent, maxStep: 5 }, `did you mean "maxSteps"?`],
    [{ ...agent, environment: {} }, "`environment` of agent 'agent' must be an environment from defineEnvironment()"],
    [{ ...agent, policy: undefined }, "agent 'agent' needs either `policy` or `act`"],
    [{ ...agent, act: () => 1 }, "agent 'agent' needs either `policy` or `act`"],
    [{ ...agent, policy: fixedPolicy }, "`policy` of agent 'agent' must be a policy: { name, open(ref, host) }"],
    [{ ...agent, policy: undefined, act: 'go' }, "`act` of agent 'agent' must be a function, it is string"],
    [{ ...agent, maxSteps: 0 }, '`maxSteps` must be a whole number of at least 1, it is 0'],
    [{ ...agent, maxSteps: 1.5 }, '`maxSteps` must be a whole number of at least 1, it is 1.5'],
    [{ ...agent, timeoutMs: -1 }, '`timeoutMs` must be a number of milliseconds up to 2147483647, it is -1'],
    [{ ...agent, timeoutMs: 2 ** 31 }, '`timeoutMs` must be a number of milliseconds'],
    [{ ...agent, grade: {} }, "`grade` of agent 'agent' must be a function or a grader, it is object"],
    [{ ...agent, mode: 'best' }, "`mode` must be 'sample' or 'greedy', it is best"],
  ])('%j', (options, message) => {
    expect(() => stepAgent(options as never)).toThrow(
      expect.objectContaining({ code: 'AGENT_INVALID', message: expect.stringContaining(message) }),
    )
  })

  it('is an agent of the module that defines it', () => {
    const { ref, params } = stepAgent({ ...agent, timeoutMs: 50 })
    expect(ref.module).toBe(import.meta.url)
    expect(params).toEqual({
      ...{ policy: { policy: 'random', version: 0, digest: null, at: null }, mode: 'sample', maxSteps: 10 },
      timeoutMs: 50,
    })
  })
})

it('is refused if the worker has another environment under its name', async () => {
  expectOneError(await runScript('two-worlds.ts'), 'AGENT_MISMATCH', "'two-worlds'", '`params`')
})
