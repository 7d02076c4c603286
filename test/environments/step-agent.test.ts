import { hash } from 'node:crypto'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type ActionStep, Runners } from 'manyworlds'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import * as worlds from '../agents/worlds.ts'

let folder: string
let files = 0
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'manyworlds-episodes-'))
})
afterAll(async () => {
  await Runners.shutdown()
  rmSync(folder, { recursive: true })
})

const newLedger = () => join(folder, `${++files}.txt`)
/** What an environment has written down. */
const linesOf = (ledger: string) => readFileSync(ledger, 'utf8').trim().split('\n')
const actions = (steps: readonly { kind: string }[]) => steps as readonly ActionStep[]

describe('an episode', () => {
  it('is one whole step for each action, and its answer is the last observation', async () => {
    const { status, answer, trajectory } = await Runners.runTask(worlds.walker.task({ width: 2 }))
    expect(status).toBe('success')
    expect(answer).toEqual({ at: expect.toSatisfy((at: number) => Math.abs(at) === 2) })
    const steps = actions(trajectory)
    expect(steps.length).toBeGreaterThan(1)
    for (const [index, step] of steps.entries()) {
      const last = index === steps.length - 1
      expect(step).toEqual({
        ...{ index, atMs: expect.any(Number), kind: 'action', observation: { at: expect.any(Number) } },
        ...{ candidates: ['left', 'right'], action: step.choice === 0 ? 'left' : 'right', choice: step.choice },
        ...{ logProb: -Math.log(2), mode: 'sample', policy: { name: 'random', version: 0 } },
        reward: last && (answer as { at: number }).at > 0 ? 1 : 0,
      })
    }
    expect(steps[0]!.observation).toEqual({ at: 0 })
  })

  it('is the same for the same task and seed, and another for another', async () => {
    const run = async (seed: number, workerNum: number) => {
      const tasks = Array.from({ length: 8 }, () => worlds.walker.task({ width: 4 }))
      const responses = [...(await Runners.runTask(tasks, { seed, workerNum })).values()]
      return responses.map(({ trajectory }) =>
        actions(trajectory).map(({ action, observation }) => [action, observation]),
      )
    }
    const once = await run(1, 1)
    expect(await run(1, 2)).toEqual(once)
    expect(await run(2, 1)).not.toEqual(once)
    expect(new Set(once.map((steps) => JSON.stringify(steps))).size).toBeGreaterThan(1)
  })

  it('meets the same chances with another policy', async () => {
    const seen = async (agent: typeof worlds.gambler | typeof worlds.sitter) => {
      const { trajectory } = await Runners.runTask(agent.task(undefined, { id: 'a' }), { seed: 3 })
      return {
        observations: trajectory.map((step) => step.observation),
        actions: trajectory.map((step) => step.action),
      }
    }
    const [gambler, sitter] = [await seen(worlds.gambler), await seen(worlds.sitter)]
    expect(gambler.observations).toEqual(sitter.observations)
    expect(new Set(gambler.observations).size).toBe(5)
    expect(gambler.actions).not.toEqual(sitter.actions)
  })

  it('may be awaited at every turn', async () => {
    const ledger = newLedger()
    const { answer, trajectory } = await Runners.runTask(worlds.puppet.task({ ledger, length: 3, ms: 1 }, { id: 'a' }))
    expect(answer).toEqual({ at: 3, action: 'do 2' })
    expect(actions(trajectory).map(({ action, observation, reward }) => [observation, action, reward])).toEqual([
      [{ at: 0 }, 'do 0', 0.5],
      [{ at: 1, action: 'do 0' }, 'do 1', 0.5],
      [{ at: 2, action: 'do 1' }, 'do 2', 0.5],
    ])
    expect(linesOf(ledger)).toEqual(['reset a', 'close a at 3'])
  })

  it('records the parts of a reward, by name', async () => {
    const returns = { reward: 0.75, rewards: { form: 0.25, sense: 0.5 } }
    const { trajectory } = await Runners.runTask(worlds.puppet.task({ ledger: newLedger(), length: 3, returns }))
    expect(actions(trajectory).map(({ reward, rewards }) => [reward, rewards])).toEqual([
      [0.5, undefined],
      [0.75, { form: 0.25, sense: 0.5 }],
      [0.5, undefined],
    ])
  })

  it('records what the policy saw, also if the environment goes on to change it', async () => {
    const { answer, trajectory } = await Runners.runTask(worlds.inPlacePlayer.task(undefined))
    expect(actions(trajectory).map(({ observation, candidates, action }) => [observation, candidates, action])).toEqual(
      [
        [{ board: [0, 0] }, [{ to: 0 }, { to: 1 }], { to: 0 }],
        [{ board: [1, 0] }, [{ to: 1 }, { to: 1 }, { to: 0 }], { to: 1 }],
        [{ board: [1, 1] }, [{ to: 1 }, { to: 0 }, { to: 0 }, { to: 0 }], { to: 0 }],
      ],
    )
    expect(answer).toEqual({ board: [2, 1] })
  })

  it('sees its task without the ground truth', async () => {
    const task = worlds.seer.task('look', { id: 'a', tools: ['x'], metadata: { level: 1 }, groundTruth: 'secret' })
    const { answer } = await Runners.runTask(task)
    expect(answer).toEqual({
      task: { id: 'a', input: 'look', tools: ['x'], metadata: { level: 1 } },
      ...{ attempt: 1, key: expect.stringMatching(/\/a$/), keys: ['task', 'state', 'call'], candidates: undefined },
      ...{ mode: 'sample', step: 0, same: true, random: expect.any(Number), answer: 'function' },
    })
    expect(JSON.stringify(answer)).not.toMatch('secret')
  })

  it('may be one of several in a group of agents', async () => {
    const { answer, trajectory } = await Runners.runTask(worlds.pair.task({ width: 2 }))
    expect(answer).toMatchObject({ walker: { success: true }, rightwards: { success: true, answer: { at: 2 } } })
    const own = trajectory.filter(({ kind, agent }) => kind === 'action' && agent === 'rightwards')
    expect(own.map(({ action }) => action)).toEqual(own.map(() => 'right'))
    expect(own.length).toBeGreaterThan(1)
  })

  it('computes in pieces: others get their turn', async () => {
    const two = [worlds.worker.task(undefined, { id: 'a' }), worlds.worker.task(undefined, { id: 'b' })]
    const responses = [...(await Runners.runTask(two, { workerNum: 1 })).values()]
    const [first, second] = responses.map(({ trajectory }) => trajectory.map((step) => step.observation as number))
    // If an episode did not give way, the other would start after the whole second that the first may take.
    expect(first![0]).toBeLessThan(second!.at(-1)!)
    expect(second![0]).toBeLessThan(first!.at(-1)!)
  })
})

describe('an episode ends', () => {
  it.each([
    ['when it is done', { length: 2 }, 2],
    ['after maxSteps, if it never is', {}, 5],
    ['when the environment cuts it short', { returns: { done: false, truncated: true } }, 2],
    ['when the environment does not say why', { returns: { done: true, truncated: 'unknown' } }, 2],
  ])('%s', async (_when, script, steps) => {
    for (const ms of [undefined, 1]) {
      const ledger = newLedger()
      const task = worlds.puppet.task({ ...script, ledger, ...(ms && { ms }) }, { id: 'a' })
      const { status, answer, trajectory } = await Runners.runTask(task)
      expect(status).toBe('success')
      expect(answer).toMatchObject({ at: steps })
      expect(trajectory).toHaveLength(steps)
      expect(linesOf(ledger)).toEqual(['reset a', `close a at ${steps}`])
    }
  })

  it("at the agent's timeoutMs, with what was reached, while a step hangs", async () => {
    const ledger = newLedger()
    const { status, answer, trajectory, timing } = await Runners.runTask(
      worlds.hasty.task({ ledger, step: 'hang' }, { id: 'a' }),
    )
    expect(status).toBe('success')
    expect(answer).toEqual({ at: 1, action: 'do 0' })
    expect(trajectory).toHaveLength(1)
    expect(timing.runMs).toBeGreaterThan(1490)
    // Closing may take 5 s; a step that hangs would take until the end of the test.
    expect(timing.runMs).toBeLessThan(30_000)
    expect(linesOf(ledger)).toEqual(['reset a', 'close a at 2'])
  })

  it("at the agent's timeoutMs, which the step can hear of", async () => {
    const ledger = newLedger()
    const task = worlds.hasty.task({ ledger, step: 'wait for the signal' }, { id: 'a' })
    expect((await Runners.runTask(task)).status).toBe('success')
    await expect.poll(() => linesOf(ledger)).toEqual(['reset a', 'aborted: TimeoutError', 'close a at 2'])
  })

  it("at the agent's timeoutMs while the policy thinks", async () => {
    const ledger = newLedger()
    const { status, answer, trajectory } = await Runners.runTask(worlds.thinker.task({ ledger }, { id: 'a' }))
    expect([status, answer, trajectory.length]).toEqual(['success', { at: 1, action: 'a thought' }, 1])
    expect(linesOf(ledger)).toEqual(['reset a', 'close a at 1'])
  })

  it("at the task's timeoutMs, which is a timeout", async () => {
    const ledger = newLedger()
    const task = worlds.puppet.task({ ledger, step: 'wait for the signal' }, { id: 'a', timeoutMs: 1500 })
    const { status, error, trajectory } = await Runners.runTask(task)
    expect([status, error?.code, trajectory.length]).toEqual(['timeout', 'TASK_TIMEOUT', 1])
    await expect.poll(() => linesOf(ledger)).toEqual(['reset a', 'aborted: TimeoutError', 'close a at 2'])
  })

  it('when its run is cancelled', async () => {
    const ledger = newLedger()
    const abort = new AbortController()
    const running = Runners.runTask(worlds.puppet.task({ ledger, step: 'hang' }, { id: 'a' }), { signal: abort.signal })
    await expect.poll(() => existsSync(`${ledger}.hangs`)).toBe(true)
    abort.abort()
    expect((await running).status).toBe('cancelled')
    await expect.poll(() => linesOf(ledger)).toEqual(['reset a', 'close a at 2'])
  })

  it('when its run is cancelled, although it only computes', async () => {
    const abort = new AbortController()
    const running = Runners.runTask(worlds.drudge.task(undefined), { signal: abort.signal, workerNum: 1 })
    setTimeout(() => abort.abort(), 1000)
    expect((await running).status).toBe('cancelled')
  })

  it("when a step blocks: the task's timeoutMs takes the worker with it", async () => {
    const ledger = newLedger()
    const task = worlds.hasty.task({ ledger, step: 'block' }, { id: 'a', timeoutMs: 1000 })
    const { status, error } = await Runners.runTask(task)
    expect([status, error?.code]).toEqual(['timeout', 'TASK_BLOCKED_WORKER'])
  })
})

describe('an environment that', () => {
  it('throws in reset fails the task with that error; there is nothing to close', async () => {
    const ledger = newLedger()
    const { status, error } = await Runners.runTask(worlds.puppet.task({ ledger, reset: 'throw' }, { id: 'a' }))
    expect([status, error?.code, error?.name, error?.message]).toEqual([
      ...['failed', 'TASK_THREW', 'RangeError', 'no world today'],
    ])
    expect(error?.stack).toMatch(/reset .*worlds\.ts:\d+/)
    expect(linesOf(ledger)).toEqual(['reset a'])
  })

  it('throws in step fails the task with that error, and is closed', async () => {
    const ledger = newLedger()
    const { error, trajectory } = await Runners.runTask(worlds.puppet.task({ ledger, step: 'throw' }, { id: 'a' }))
    expect([error?.code, error?.name, error?.message]).toEqual(['TASK_THREW', 'RangeError', 'the world is broken'])
    expect(error?.stack).toMatch(/step .*worlds\.ts:\d+/)
    expect(trajectory).toHaveLength(1)
    expect(linesOf(ledger)).toEqual(['reset a', 'close a at 2'])
  })

  it('does not get through its reset in time is a failure, and what it makes later is closed', async () => {
    const ledger = newLedger()
    const { status, error } = await Runners.runTask(worlds.hasty.task({ ledger, reset: 3000 }, { id: 'a' }))
    expect([status, error?.code]).toEqual(['failed', 'ENVIRONMENT_FAULT'])
    expect(error?.message).toBe(
      "reset of environment 'scripted' took longer than the timeoutMs of agent 'puppet' (1500 ms)",
    )
    await expect.poll(() => linesOf(ledger)).toEqual(['reset a', 'close a at 0'])
    const never = await Runners.runTask(worlds.hasty.task({ ledger: newLedger(), reset: 'hang' }))
    expect(never.error?.code).toBe('ENVIRONMENT_FAULT')
  })

  it.each([
    [{ reward: Number.NaN }, 'returned the reward NaN; return a finite number, 0 if there is nothing to reward'],
    [{ reward: Number.POSITIVE_INFINITY }, 'returned the reward Infinity; return a finite number'],
    [{ reward: '1' }, "returned the reward '1'; return a finite number"],
    [{ reward: undefined }, 'returned the reward undefined; return a finite number'],
    [{ rewards: { form: Number.NaN } }, "returned NaN as the reward 'form'; return a finite number"],
    [{ rewards: [1] }, 'returned [1] as `rewards`; return numbers by name'],
    [{ done: 'yes' }, "returned 'yes' as `done`; return true or false"],
    [{ done: undefined }, 'returned undefined as `done`; return true or false'],
    [{ observation: undefined }, 'returned no `observation`'],
    [{ truncated: 'maybe' }, "returned 'maybe' as `truncated`"],
    [{ success: 1 }, 'returned 1 as `success`'],
    [{ candidates: 'left' }, "returned 'left' as `candidates`; return an array of actions"],
  ])('returns %j is told what to return, and is closed', async (returns, message) => {
    const ledger = newLedger()
    const { status, error, trajectory } = await Runners.runTask(worlds.puppet.task({ ledger, returns }, { id: 'a' }))
    expect([status, error?.code]).toEqual(['failed', 'ENVIRONMENT_FAULT'])
    expect(error?.message).toMatch("step 1 of environment 'scripted'")
    expect(error?.message).toMatch(message)
    expect(trajectory).toHaveLength(1)
    expect(linesOf(ledger)).toEqual(['reset a', 'close a at 2'])
  })

  it.each([
    [{ reset: null }, "reset of environment 'returning' returned null; return { state, observation }"],
    [{ reset: 5 }, "reset of environment 'returning' returned 5; return { state, observation }"],
    [{ reset: { state: 1 } }, "reset of environment 'returning' returned no `observation`"],
    [{ reset: { state: 1, observation: 1, candidates: 1 } }, "reset of environment 'returning' returned 1 as"],
    [{ step: undefined }, "step 0 of environment 'returning' returned undefined; return { observation, reward, done }"],
    [{ step: 'done' }, "step 0 of environment 'returning' returned 'done'; return"],
    [
      { reset: { state: {}, observation: 0, candidates: [] } },
      "environment 'returning' returned an empty list of candidates for step 0, but is not done; leave `candidates` out if any action is allowed",
    ],
  ])('returns what is no result: %j', async (input, message) => {
    const { error } = await Runners.runTask(worlds.returner.task(input))
    expect(error?.code).toBe('ENVIRONMENT_FAULT')
    expect(error?.message).toMatch(message)
  })

  it('shows what is no plain data is told so', async () => {
    const { error } = await Runners.runTask(worlds.returner.task({ reset: { state: {}, observation: 0 } }))
    expect(error?.code).toBe('ENVIRONMENT_FAULT')
    expect(error?.message).toMatch("cannot record step 1 of environment 'returning': observations, candidates and")
  })

  it('gives its state to two episodes is told so, whether or not they overlap', async () => {
    const tasks = [worlds.leaking.task(undefined, { id: 'a' }), worlds.leaking.task(undefined, { id: 'b' })]
    const responses = [...(await Runners.runTask(tasks, { workerNum: 1 })).values()]
    expect(responses.map(({ status }) => status)).toEqual(['success', 'failed'])
    expect(responses[1]!.error?.code).toBe('ENVIRONMENT_FAULT')
    expect(responses[1]!.error?.message).toBe(
      "reset of environment 'leaky' returned the same state object for task 'b' as for task 'a'; create a new object in every reset (`state: { ...start }`), or freeze it if no step changes it",
    )
  })

  it('begins with a frozen state may share it', async () => {
    const tasks = Array.from({ length: 4 }, () => worlds.sharing.task(undefined))
    const responses = [...(await Runners.runTask(tasks, { workerNum: 1 })).values()]
    expect(responses.map(({ answer }) => answer)).toEqual([3, 3, 3, 3])
  })

  it('cannot be closed loses nothing, and says so', async () => {
    const throwing = await Runners.runTask(worlds.puppet.task({ ledger: newLedger(), length: 1, close: 'throw' }))
    expect(throwing.status).toBe('success')
    expect(throwing.logs).toEqual(["close of environment 'scripted' failed: Error: it cannot be closed"])
    const hanging = await Runners.runTask(worlds.puppet.task({ ledger: newLedger(), length: 1, close: 'hang' }))
    expect(hanging.status).toBe('success')
    expect(hanging.logs).toEqual([
      "close of environment 'scripted' did not finish within 5000 ms; the episode does not wait for it",
    ])
  })
})

describe('a policy', () => {
  it('gets what it has learned as a blob', async () => {
    const { params } = worlds.wellReadAgent
    const versions = ['one', 'two'].map((words) => Buffer.from(words))
    const tasks = versions.map((bytes, version) => {
      const blob = hash('sha256', bytes)
      const policy = { ...params.policy!, version, digest: blob, at: { blob } }
      return worlds.wellReadAgent.withParams({ ...params, policy }).task(1)
    })
    const [one, two] = versions
    const responses = await Runners.runTask(tasks, { blobs: { one: one!, two: two! } })
    expect([...responses.values()].map(({ answer }) => answer)).toEqual(['one', 'two'])
  })

  const dishes = [{ dish: 'soup' }, { dish: 'fish' }]
  const order = (choose: unknown) => Runners.runTask(worlds.guest.task({ dishes, choose }))

  it('may choose a candidate by what is in it', async () => {
    const { answer, trajectory } = await order({ dish: 'fish' })
    expect(answer).toBe('fish')
    expect(trajectory[0]).toMatchObject({ action: { dish: 'fish' }, choice: 1, logProb: null, policy: null })
    expect((await order({ action: { dish: 'fish' }, index: 1 })).answer).toBe('fish')
  })

  it.each([
    [{ dish: 'cake' }, `chose {"dish":"cake"} at step 0, which is not one of the 2 candidates`],
    [{ action: { dish: 'fish' }, index: 0 }, `chose {"dish":"fish"} at step 0 with the index 0, which is not one`],
    [{ action: { dish: 'fish' }, index: 2 }, 'with the index 2, which is not one of the 2 candidates'],
    [undefined, 'chose no action at step 0; it returned undefined'],
    [{ action: { dish: 'fish' }, logProb: Number.NaN }, 'gave the log-probability NaN at step 0'],
    [{ action: { dish: 'fish' }, value: '9' }, "gave the value '9' at step 0"],
  ])('that chooses %j fails its task: it is a mistake that nobody should learn from', async (choose, message) => {
    const { status, error } = await order(choose)
    expect([status, error?.code]).toEqual(['failed', 'ACTION_INVALID'])
    expect(error?.message).toMatch("`act` of agent 'guest'")
    expect(error?.message).toContain(message)
  })

  it('can say how likely its choice was, and what it expects', async () => {
    const { trajectory } = await Runners.runTask(worlds.valued.task({ width: 3 }))
    expect(trajectory).toMatchObject([{ action: 'right', choice: 1, logProb: -0.25, value: 0.75, policy: null }])
  })

  it('that always does the same has no doubts', async () => {
    const { answer, trajectory } = await Runners.runTask(worlds.rightwards.task({ width: 3 }))
    expect(answer).toEqual({ at: 3 })
    for (const step of actions(trajectory))
      expect(step).toMatchObject({ action: 'right', choice: 1, logProb: 0, policy: { name: 'fixed', version: 0 } })
  })

  it('is opened once in a worker for each version, which every step names', async () => {
    const { params } = worlds.learner
    const version = (number: number) =>
      worlds.learner.withParams({ ...params, mode: 'greedy', policy: { ...params.policy!, version: number } })
    const tasks = [worlds.learner.task(1), version(7).task(1), version(8).task(1), version(7).task(1)]
    const responses = [...(await Runners.runTask(tasks, { workerNum: 1 })).values()]
    expect(responses.map(({ answer }) => answer)).toEqual(['sample 0 1', 'greedy 7 1', 'greedy 8 1', 'greedy 7 1'])
    expect(responses.map(({ trajectory }) => actions(trajectory)[0]!.policy?.version)).toEqual([0, 7, 8, 7])
    expect(actions(responses[1]!.trajectory)[0]).toMatchObject({ mode: 'greedy', logProb: -1 })
  })

  it.each([
    [{ version: 13 }, 'the weights are lost'],
    [{ version: 14 }, "policy 'versioned' cannot be used by a step agent: its `open` returned no `act`"],
    [{ policy: 'other' }, "params name the policy 'other', but the agent has 'versioned'"],
  ])('that cannot be opened fails what needs it: %j', async (ref, message) => {
    const { params } = worlds.learner
    const { error } = await Runners.runTask(
      worlds.learner.withParams({ ...params, policy: { ...params.policy!, ...ref } }).task(1),
    )
    expect(error?.code).toBe('SETUP_FAILED')
    expect(error?.message).toMatch(message)
  })

  it('may ask services of the driver', async () => {
    const services = { oracle: (question: string) => `${question}: 42` }
    expect((await Runners.runTask(worlds.asker.task('life'), { services })).answer).toBe('life: 42')
  })

  it('that chooses among candidates needs some', async () => {
    const { error } = await Runners.runTask(worlds.lost.task(1))
    expect(error?.code).toBe('ACTION_INVALID')
    expect(error?.message).toMatch("policy 'random' needs candidates, but the environment lists none")
  })

  it('cannot be given limits that are none', async () => {
    const { params } = worlds.learner
    const { error } = await Runners.runTask(worlds.learner.withParams({ ...params, maxSteps: 0 }).task(1))
    expect(error?.code).toBe('SETUP_FAILED')
    expect(error?.message).toMatch(
      "params of agent 'learner': `maxSteps` must be a whole number of at least 1, it is 0",
    )
  })
})
