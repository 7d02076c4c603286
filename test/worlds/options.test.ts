import { type OpenEnvOptions, openEnv, pythonWorld, reasoningGymTasks } from 'manyworlds/agents'
import { describe, expect, test } from 'vitest'
import { solver } from '../agents/python-worlds.ts'

/** Mistakes are found where the world is defined, before anything is started. */

describe('pythonWorld', () => {
  test.each([
    [undefined, "`kind` must be 'gymnasium' or 'reasoning-gym', it is undefined"],
    [{ kind: 'gym', id: 'CartPole-v1' }, "`kind` must be 'gymnasium' or 'reasoning-gym', it is 'gym'"],
    [{ kind: 'gymnasium' }, '`id` is missing'],
    [{ kind: 'gymnasium', id: '' }, "`id` must be a non-empty text, it is ''"],
    [{ kind: 'gymnasium', id: 'A', kwarg: {} }, `unknown option 'kwarg'; allowed: kind, `],
    [{ kind: 'gymnasium', id: 'A', kwarg: {} }, `; did you mean "kwargs"?`],
    [{ kind: 'gymnasium', id: 'A', kwargs: [] }, '`kwargs` must be an object, it is an array'],
    [
      { kind: 'gymnasium', id: 'A', kwargs: { reward: () => 1 } },
      'cannot send `kwargs` to Python: .reward is a function',
    ],
    [{ kind: 'gymnasium', id: 'A', kwargs: { at: new Date(0) } }, '.at is not plain data (Date)'],
    [{ kind: 'gymnasium', id: 'A', maxEpisodeSteps: 0 }, '`maxEpisodeSteps` must be a whole number above 0, it is 0'],
    [
      { kind: 'gymnasium', id: 'A', stepTimeoutMs: '1s' },
      "`stepTimeoutMs` must be a number of milliseconds above 0, it is '1s'",
    ],
    [{ kind: 'gymnasium', id: 'A', packages: 'swig' }, "`packages` must be a list of texts, it is 'swig'"],
    [{ kind: 'reasoning-gym', kwargs: {} }, "unknown option 'kwargs'"],
  ])('%j is a mistake', (options, message) => {
    expect(() => pythonWorld(options as never)).toThrow(
      expect.objectContaining({ code: 'ENVIRONMENT_INVALID', message: expect.stringContaining(`pythonWorld: `) }),
    )
    expect(() => pythonWorld(options as never)).toThrow(message)
  })
})

describe('openEnv', () => {
  test.each([
    [{}, '`url` is missing'],
    [{ url: 'localhost:8000' }, "`url` must be an address such as http://localhost:8000, it is 'localhost:8000'"],
    [{ url: 'ftp://a' }, '`url` must be an address'],
    [{ url: 'http://a', timeoutMs: 5 }, "unknown option 'timeoutMs'"],
    [
      { url: 'http://a', callTimeoutMs: Number.NaN },
      '`callTimeoutMs` must be a number of milliseconds above 0, it is NaN',
    ],
  ])('%j is a mistake', (options, message) => {
    expect(() => openEnv(options as OpenEnvOptions)).toThrow(
      expect.objectContaining({ code: 'ENVIRONMENT_INVALID', message: expect.stringContaining(`openEnv: ${message}`) }),
    )
  })
})

describe('reasoningGymTasks', () => {
  test.each([
    [{ dataset: 'chain_sum', size: 1, seed: 1 }, '`agent` is missing'],
    [{ agent: solver, dataset: 'chain_sum', size: 0, seed: 1 }, '`size` must be a whole number above 0, it is 0'],
    [{ agent: solver, dataset: 'chain_sum', size: 1 }, '`seed` is missing'],
  ])('%o is a mistake', (options, message) => {
    const tasks = () => reasoningGymTasks(options as Parameters<typeof reasoningGymTasks>[0])
    expect(tasks).toThrow(`reasoningGymTasks: ${message}`)
  })
})
