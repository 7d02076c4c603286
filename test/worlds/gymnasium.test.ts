import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type ActionStep, type RunConfig, Runners, type TaskResponse } from 'manyworlds'
import { pythonWorld } from 'manyworlds/agents'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { worldEnvSpec } from '../../dist/agents/worlds/world-packages.js'
import { existingEnvironment } from '../../dist/python/environment.js'
import { balancer, doer, swinger, walker, wanderer } from '../agents/python-worlds.ts'
import { type Daemon, startNode } from '../nodes/daemon.ts'
import { SET_UP_MS, whyNoWorlds } from './needs-python.ts'

/** Gymnasium worlds in workers: the same as plain Gymnasium, whatever dies. */

const skip = (await whyNoWorlds('gymnasium')) !== undefined
/** Python is started several times in a test, and reads Gymnasium for some seconds each time on a slow machine. */
vi.setConfig({ testTimeout: 240_000 })
const PYTHONPATH = fileURLToPath(new URL('python', import.meta.url))
const [SEEDED, KILL, END] = [0, 1, 9]

let node: Daemon
let folder: string
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'manyworlds-worlds-'))
  node = await startNode()
}, SET_UP_MS)
afterAll(async () => {
  await Runners.shutdown()
  await node?.kill('SIGTERM')
  rmSync(folder, { recursive: true, force: true })
})

const engines: [name: string, config: () => RunConfig][] = [
  ['local', () => ({ workerNum: 2 })],
  ['nodes', () => ({ engineName: 'nodes', nodes: { addresses: [node.address] } })],
]

interface Plain {
  readonly steps: readonly (readonly [observation: unknown, reward: number])[]
  readonly last: unknown
  readonly terminated: boolean
}

/** What plain Gymnasium, in the same environment, does with the same seeds and the same way to act. */
function inPlainGymnasium(episodes: readonly (readonly [id: string, seed: number])[]): Plain[] {
  const script = fileURLToPath(new URL('python/plain_gymnasium.py', import.meta.url))
  const python = existingEnvironment(worldEnvSpec('gymnasium'))!
  const output = execFileSync(python, [script], { input: JSON.stringify(episodes), maxBuffer: 1e9 }).toString()
  return output
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Plain)
}

const seen = ({ trajectory, answer, episode }: TaskResponse): Plain => ({
  steps: (trajectory as readonly ActionStep[]).map(({ observation, reward }) => [observation, reward] as const),
  last: answer,
  terminated: episode?.ending.kind === 'terminated',
})

describe.skipIf(skip)('FrozenLake, CartPole and Pendulum', () => {
  const agents = { 'FrozenLake-v1': walker, 'CartPole-v1': balancer, 'Pendulum-v1': swinger } as const
  const seeds = (id: keyof typeof agents, count: number, from: number) =>
    Array.from({ length: count }, (_, at) => [id, from + at] as const)
  const episodes = [
    ...seeds('CartPole-v1', 10, 7),
    ...seeds('FrozenLake-v1', 100, 0),
    ...seeds('Pendulum-v1', 5, 2 ** 31),
  ]

  test.each(engines)('do on %s what they do in plain Gymnasium, to the last bit', async (_, config) => {
    const expected = inPlainGymnasium(episodes)
    const tasks = episodes.map(([id, seed]) => agents[id].task({ seed }))
    const responses = [...(await Runners.runTask(tasks, config())).values()]
    expect(responses.filter(({ status }) => status !== 'success')).toEqual([])
    expect(responses.map(seen)).toEqual(expected)
    const cut = { kind: 'truncated', by: 'environment' }
    for (const { episode } of responses.slice(-5)) expect(episode?.ending).toEqual(cut)
    // There are episodes that came to an end and others that were cut short, and they are long enough to differ.
    expect(new Set(expected.map(({ terminated }) => terminated)).size).toBe(2)
    expect(expected.reduce((sum, { steps }) => sum + steps.length, 0)).toBeGreaterThan(5000)
  })

  test.each([
    ['CartPol-v1', /raised NameNotFound: .*Did you mean: `CartPole`/],
    ['LunarLander-v3', /raised DependencyNotInstalled: .*\. Add the missing package to `packages` of pythonWorld\(\)/],
    ['no_such_module:Maze-v0', /raised ModuleNotFoundError: .* Add the missing package to `packages`/],
    ['ALE/Pong-v5', /raised NamespaceNotFound: .* include its module in the id \("ale_py:ALE\/Pong-v5"/],
  ])('if a world is not there, it is said what to do: %s', async (id, message) => {
    await expect(pythonWorld({ kind: 'gymnasium', id }).describe()).rejects.toMatchObject({
      code: 'WORLD_FAILED',
      message: expect.stringMatching(message),
    })
  })

  test('say what they are like', async () => {
    expect(await pythonWorld({ kind: 'gymnasium', id: 'CartPole-v1', maxEpisodeSteps: 7 }).describe()).toEqual({
      version: '1.4.0',
      observationSpace: {
        type: 'Box',
        text: expect.stringMatching(/^Box\(/),
        shape: [4],
        dtype: 'float32',
        low: [Math.fround(-4.8), -Infinity, expect.closeTo(-0.4189, 4), -Infinity],
        high: [Math.fround(4.8), Infinity, expect.closeTo(0.4189, 4), Infinity],
      },
      actionSpace: { type: 'Discrete', text: 'Discrete(2)', n: 2, start: 0 },
      maxEpisodeSteps: 7,
      rewardThreshold: 475,
    })
  })

  test('without a seed, they have one that follows from the seed of the run', async () => {
    const run = async (seed: number, config: RunConfig) => {
      const tasks = Array.from({ length: 10 }, () => wanderer.task({}))
      return [...(await Runners.runTask(tasks, { ...config, seed })).values()].map(seen)
    }
    const [local, nodes] = engines.map(([, config]) => config())
    const once = await run(1, local!)
    expect(await run(1, nodes!)).toEqual(once)
    expect(await run(2, local!)).not.toEqual(once)
    expect(new Set(once.map((one) => JSON.stringify(one))).size).toBeGreaterThan(5)
  })
})

describe.skipIf(skip)('in a run', () => {
  const calm = (seed: number) => doer.task({ seed, actions: [SEEDED, SEEDED, SEEDED, SEEDED, END] })
  const others = Array.from({ length: 40 }, (_, seed) => calm(seed))
  const config = (more: RunConfig = {}): RunConfig => ({ workerNum: 2, env: { PYTHONPATH }, ...more })
  const alive = (file: string) => {
    const pids = readFileSync(file, 'utf8').match(/\d+/g)!.map(Number)
    return pids.filter((pid) => {
      try {
        return process.kill(pid, 0)
      } catch {
        return false
      }
    })
  }

  test('a step that kills Python is charged to its task, each time; the others do as if nothing had happened', async () => {
    const expected = [...(await Runners.runTask(others, config())).values()].map(seen)
    const bad = doer.task({ seed: 1, actions: [SEEDED, KILL] }, { id: 'bad' })
    const tasks = [...others.slice(0, 20), bad, ...others.slice(20)]
    const responses = await Runners.runTask(tasks, config({ maxAttempts: 3 }))
    expect(responses.get('bad')).toMatchObject({
      status: 'failed',
      attempts: 3,
      error: {
        code: 'WORLD_CRASHED',
        message: expect.stringContaining("was killed by SIGKILL during step 1 of 'odd'"),
      },
    })
    const rest = [...responses.values()].filter(({ id }) => id !== 'bad')
    expect(rest.filter(({ attempts }) => attempts !== 1)).toEqual([])
    expect(rest.map(seen)).toEqual(expected)
  })

  const killing = (whom: string) => {
    const file = join(folder, whom)
    const input = { seed: 5, actions: [SEEDED, SEEDED, SEEDED, SEEDED, END], kill: { file, whom } }
    return { file, task: doer.task(input, { id: 'killer' }) }
  }

  test.runIf(process.platform === 'linux')('a Python that is killed from outside is charged to nobody', async () => {
    const { file, task } = killing('python')
    const response = await Runners.runTask(task, config())
    expect(response).toMatchObject({ status: 'success', attempts: 1 })
    expect(seen(response)).toEqual(seen(await Runners.runTask(calm(5), config())))
    expect(response.logs.join()).toContain("was killed by SIGKILL while no step of 'odd' was executing")
    expect(alive(file)).toEqual([])
  })

  test.runIf(process.platform === 'linux')('a worker that is killed takes its Python with it', async () => {
    const { file, task } = killing('worker')
    const responses = [...(await Runners.runTask([...others, task], config())).values()]
    const bad = responses.filter(({ status }) => status !== 'success')
    expect(bad.map(({ id, status }) => [id, status])).toEqual([['killer', 'crashed']])
    await expect.poll(() => alive(file), { timeout: 40_000 }).toEqual([])
  })

  test('a machine without Python and uv says so', async () => {
    const env = { PATH: folder, XDG_CACHE_HOME: join(folder, 'cache') }
    const { status, error } = await Runners.runTask(walker.task({ seed: 1 }), { workerNum: 1, env })
    expect({ status, code: error?.code }).toEqual({ status: 'failed', code: 'SETUP_FAILED' })
    expect(error?.message).toMatch(
      /cannot run worlds of kind .* on .*: neither uv nor python3 is on the PATH; install .* \[PYTHON_MISSING\]$/,
    )
  })

  test('what was set up for it is in the log of its first task', { timeout: SET_UP_MS }, async () => {
    const env = { XDG_CACHE_HOME: join(folder, 'fresh') }
    const tasks = [walker.task({ seed: 1 }), walker.task({ seed: 2 })]
    const responses = [...(await Runners.runTask(tasks, { workerNum: 1, env, timeoutMs: 60_000 })).values()]
    expect(responses.map(({ status }) => status)).toEqual(['success', 'success'])
    const lines = responses.flatMap(({ logs }) => logs)
    expect(lines).toEqual(
      expect.arrayContaining([
        expect.stringMatching(/^setting up Python for Gymnasium [\d.]+ in .*fresh.*; this happens once/),
        expect.stringMatching(/^Python for Gymnasium [\d.]+ is ready/),
      ]),
    )
  })
})
