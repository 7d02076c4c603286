import { rmSync, statSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { inspect } from 'node:util'
import { zstdCompressSync } from 'node:zlib'
import { type ModelStep, Runners, type Step, type StepEvent } from 'manyworlds'
import { RunFile } from 'manyworlds/runs'
import { afterAll, describe, expect, it } from 'vitest'
import { MOST_STEPS, type StepContent, type StepTokens } from '../../src/trajectory/step.ts'
import { everyKind, recorder, sleeper, talker } from '../agents/recorders.ts'
import { manyworlds } from '../cli/manyworlds.ts'
import { query, storeFolder } from './store-folder.ts'

afterAll(() => Runners.shutdown())

describe('steps', () => {
  it('are in the store while their task runs, and an observer hears of them after that', async () => {
    const { store, file } = storeFolder()
    const told: number[] = []
    const stored: number[] = []
    const onStep = ({ taskId, attempt, step }: StepEvent) => {
      const [row] = query(file('r'), 'SELECT count(*) AS n FROM steps WHERE id = ? AND step = ?', taskId, step.index)
      told.push(step.index)
      stored.push(Number(row!.n))
      expect(attempt).toBe(1)
    }
    const running = Runners.runTask(recorder.task({ steps: 5, ms: 1000 }), { store, runId: 'r', onStep })
    await expect.poll(() => told.length, { interval: 20 }).toBeGreaterThan(1)
    using run = RunFile.open('r', { store })
    const task = run.task('#1')!
    expect(task.status).toBe('running')
    expect(task.unfinished).toMatchObject([{ attempt: 1, worker: { id: expect.stringContaining('local-') } }])
    expect(task.unfinished[0]!.trajectory.length).toBeGreaterThan(0)
    await running
    expect(told).toEqual([0, 1, 2, 3, 4])
    expect(stored).toEqual([1, 1, 1, 1, 1])
    expect(run.task('#1')).toMatchObject({ status: 'success', unfinished: [] })
  })

  it('are told of once each, also where responses carry them', async () => {
    const { store } = storeFolder()
    const told: number[] = []
    const onStep = ({ step }: StepEvent) => told.push(step.index)
    const task = recorder.task({ steps: 300, ms: 1 })
    for await (const { trajectory } of Runners.streamTask([task], { store, onStep }))
      expect(trajectory).toHaveLength(300)
    expect(told).toEqual(Array.from({ length: 300 }, (_, i) => i))
  })

  it('can be read one by one, with pauses as long as one likes', async () => {
    const { store } = storeFolder()
    const response = await Runners.runTask(recorder.task({ steps: 3_000, chars: 300 }), { store })
    let count = 0
    for await (const { index } of response.steps()) {
      expect(index).toBe(count++)
      // By then the connection is closed.
      if (index === 0) await sleep(1200)
    }
    expect(count).toBe(3_000)
  })

  it('are told of without a store too', async () => {
    const told: number[] = []
    await Runners.runTask(recorder.task({ steps: 3 }), { store: false, onStep: ({ step }) => told.push(step.index) })
    expect(told).toEqual([0, 1, 2])
  })

  it('of a task that records none, but runs for a while, show that it does', async () => {
    const { store, file } = storeFolder()
    const tasks = [sleeper.task(700, { id: 'long' }), sleeper.task(1, { id: 'short' })]
    const responses = await Runners.runTask(tasks, { store, runId: 'r' })
    // On a busy machine a task of a millisecond may run for a while, too.
    const whiles = [...responses.values()].filter(({ timing }) => timing.runMs > 150).map(({ id }) => id)
    const starts = query(file('r'), 'SELECT id, attempt, worker FROM starts')
    expect(starts).toContainEqual({ id: 'long', attempt: 1, worker: expect.stringContaining('local-') })
    for (const { id } of starts) expect(whiles).toContain(id)
  })

  it('can be asked for in SQL, each as a row', async () => {
    const { store, file } = storeFolder()
    await Runners.runTask(recorder.task({ steps: 3 }, { id: 't', groupId: 'g' }), { store, runId: 'r' })
    expect(query(file('r'), 'SELECT step, action, reward, kind, is_final, is_cut, run_id FROM steps')).toEqual(
      [0, 1, 2].map((i) => ({
        step: i,
        action: String(i),
        reward: i / 2,
        kind: 'note',
        is_final: 1,
        is_cut: 0,
        run_id: 'r',
      })),
    )
    const [{ record }] = query(file('r'), 'SELECT record FROM steps WHERE step = 1') as [{ record: string }]
    using run = RunFile.open('r', { store })
    const { trajectory } = run.task('t')!.response!
    expect(JSON.parse(record)).toEqual(trajectory[1])
    const [{ list }] = query(file('r'), 'SELECT trajectory AS list FROM responses') as [{ list: string }]
    expect(JSON.parse(list)).toEqual(trajectory)
    expect(query(file('r'), 'SELECT group_id FROM tasks')).toEqual([{ group_id: 'g' }])
  })

  it('of every kind come back as they were, with token ids and log-probabilities', async () => {
    const { store, file } = storeFolder()
    const policy = { name: 'p', version: 7 }
    const sampling = { temperature: 1, topP: 1, topK: 0, minP: 0, other: null }
    const tokens: StepTokens = {
      ...{ tokenizer: 't', from: null, of: 'raw' as const, constrained: false },
      tail: Int32Array.from({ length: 500 }, (_, i) => i * 300),
      completion: Int32Array.of(5, 128_000, 0),
      logProbs: Float64Array.of(Number.NaN, Number.NEGATIVE_INFINITY, -0),
    }
    const request = { from: null, keep: 0, added: [{ role: 'user', content: 'hi' }], tools: '', wire: '{}' } as const
    const call = { step: 0, position: 0, id: 'c' }
    const steps: StepContent[] = [
      {
        ...{ kind: 'model', role: 'agent', policy, server: { model: 'small' }, request, tokens, sampling },
        ...{
          reply: { role: 'assistant', content: 'ho', wire: '{}' },
          finish: 'stop',
          cached: false,
          ms: 3,
          retries: 0,
        },
        usage: { inputTokens: 500, outputTokens: 3, costUsd: 0.25 },
      },
      { kind: 'tool', call, name: 'search', arguments: { raw: '{"q":1}', value: { q: 1 } }, result: [1, 2], ms: 2 },
      {
        ...{ kind: 'action', observation: { board: 'x' }, candidates: ['a', 'b'], action: 'b', choice: 1 },
        ...{
          logProb: -0.5,
          value: 0.1,
          mode: 'sample',
          policy: { ...policy, version: 8 },
          reward: 1,
          rewards: { win: 1 },
        },
      },
      { kind: 'note', text: 'done', branch: 2, agent: 'judge' },
    ]
    const response = await Runners.runTask(everyKind.task(steps, { id: 't' }), { store, runId: 'r' })
    const expected = steps.map((step, index) => ({ index, atMs: expect.any(Number), ...step }))
    expect(response.trajectory).toEqual(expected)
    expect(Object.is((response.trajectory[0] as ModelStep).tokens!.logProbs![2], -0)).toBe(true)
    expect(query(file('r'), 'SELECT kind, version, reward FROM steps')).toEqual([
      { kind: 'model', version: 7, reward: null },
      { kind: 'tool', version: null, reward: null },
      { kind: 'action', version: 8, reward: 1 },
      { kind: 'note', version: null, reward: null },
    ])
    expect(query(file('r'), 'SELECT tokens_in, tokens_out, cost FROM responses')).toEqual([
      { tokens_in: 500, tokens_out: 3, cost: 0.25 },
    ])
    const tail = await manyworlds(['tail', 'r', '--steps', '--from-start'], {
      cwd: store,
      env: { MANYWORLDS_STORE: store },
    })
    expect(tail.stdout).toMatch(/small: ho\n.*search \{"q":1\}\n.*'b'\n.*done\n/)
  })

  it('of a conversation take little more than one compressed text of it', { timeout: 120_000 }, async () => {
    for (const [turns, chars, tools] of [
      [50, 200, false],
      [200, 200, false],
      [200, 900, false],
      [200, 200, true],
      [200, 900, true],
    ] as const) {
      const { store } = storeFolder()
      const path = `${store}/chat.sqlite`
      const empty = `${store}/empty.sqlite`
      await Runners.runTask(talker.task({ turns: 0, chars, tools }), { store: empty, runId: 'r' })
      const response = await Runners.runTask(talker.task({ turns, chars, tools }), { store: path, runId: 'r' })
      const raw = JSON.stringify(response.trajectory)
      const blob = zstdCompressSync(raw).length
      const stored = statSync(path).size - statSync(empty).size
      process.stderr.write(
        `chat of ${turns} turns${tools ? ' with tools' : ''}: ${raw.length} raw, ${blob} as one blob, ${stored} stored\n`,
      )
      expect(stored).toBeLessThan(1.5 * blob + 8192)
    }
  })
})

describe('an attempt that records without end', () => {
  it('fails with a clear error, and its steps do not run into those of others', { timeout: 240_000 }, async () => {
    const { store, file } = storeFolder()
    const tasks = [
      recorder.task({ steps: MOST_STEPS + 1, waits: true }, { id: 'endless' }),
      recorder.task({ steps: 20, ms: 50 }, { id: 'other' }),
    ]
    const responses = await Runners.runTask(tasks, { store, runId: 'r', workerNum: 2, concurrency: 1 })
    expect(responses.get('endless')).toMatchObject({
      status: 'failed',
      error: { name: 'RangeError', message: expect.stringContaining(`${MOST_STEPS} steps at most`) },
    })
    const counts = query(
      file('r'),
      'SELECT id, count(*) AS n, min(step) AS first, max(step) AS last FROM steps GROUP BY id',
    )
    expect(counts).toEqual([
      { id: 'endless', n: MOST_STEPS, first: 0, last: MOST_STEPS - 1 },
      { id: 'other', n: 20, first: 0, last: 19 },
    ])
    expect(responses.get('other')!.trajectory.map(({ action }) => action)).toEqual(
      Array.from({ length: 20 }, (_, i) => i),
    )
  })
})

describe('a response with a store', () => {
  it('reads its steps when they are asked for, and keeps none', async () => {
    const { store } = storeFolder()
    const response = await Runners.runTask(recorder.task({ steps: 4, chars: 100 }), { store, runId: 'r' })
    expect(JSON.stringify(response)).not.toContain('"action"')
    expect(inspect(response, { depth: 9 })).not.toContain('action')
    expect(response.trajectory).toHaveLength(4)
    expect(response.trajectory).not.toBe(response.trajectory)
    const steps: Step[] = []
    for await (const step of response.steps()) steps.push(step)
    expect(steps).toEqual(response.trajectory)
    rmSync(store, { recursive: true })
    expect(() => response.trajectory).toThrow(expect.objectContaining({ code: 'STORE_GONE' }))
    await expect(async () => {
      for await (const _ of response.steps());
    }).rejects.toMatchObject({ code: 'STORE_GONE', message: expect.stringContaining(store) })
  })

  it('is read as slowly as somebody likes, and left at any step', async () => {
    const { store } = storeFolder()
    const response = await Runners.runTask(recorder.task({ steps: 4 }), { store, runId: 'r' })
    const file = RunFile.open('r', { store })
    const fromFile = file.task('#1')!.response!
    const read = await Promise.all(
      [response, fromFile].map(async (one) => {
        const seen: number[] = []
        for await (const { index } of one.steps()) {
          seen.push(index)
          // Longer than a connection is kept open that nobody uses.
          await sleep(1300)
          file.close()
        }
        return seen
      }),
    )
    expect(read).toEqual([
      [0, 1, 2, 3],
      [0, 1, 2, 3],
    ])
    for await (const { index } of response.steps()) if (index === 1) break
    expect(response.trajectory).toHaveLength(4)
  })

  it('carries its steps when it comes from streamTask, without a store, or to a parent', async () => {
    const { store } = storeFolder()
    for await (const response of Runners.streamTask([recorder.task({ steps: 2 })], { store }))
      expect(Object.hasOwn(response, 'trajectory')).toBe(true)
    const plain = await Runners.runTask(recorder.task({ steps: 2 }), { store: false })
    expect(Object.hasOwn(plain, 'trajectory')).toBe(true)
  })
})

describe('too many steps for the disk', () => {
  it('make workers wait, and nothing is lost', { timeout: 120_000 }, async () => {
    const { store } = storeFolder()
    const tasks = Array.from({ length: 128 }, (_, i) =>
      recorder.task({ steps: 16, chars: 64 * 1024, waits: i % 2 === 0 }, { id: `t${i}` }),
    )
    const responses = await Runners.runTask(tasks, { store, runId: 'r', workerNum: 2, concurrency: 64 })
    for (const response of responses.values()) {
      expect(response.answer).toBe(16)
      let count = 0
      for await (const step of response.steps()) {
        expect(step.index).toBe(count++)
        expect((step as { text: string }).text).toHaveLength(64 * 1024)
      }
      expect(count).toBe(16)
    }
  })
})

describe('what is no longer there', () => {
  it('is told, and not taken from another run that has its place', async () => {
    const { store } = storeFolder()
    const options = { cwd: store, env: { MANYWORLDS_STORE: store } }
    const old = await Runners.runTask(recorder.task({ steps: 2 }), { store, runId: 'same' })
    expect((await manyworlds(['rm', 'same', '--yes'], options)).code).toBe(0)
    expect(() => old.trajectory).toThrow(expect.objectContaining({ code: 'STORE_GONE' }))
    const other = await Runners.runTask(recorder.task({ steps: 5 }), { store, runId: 'same' })
    expect(() => old.trajectory).toThrow(expect.objectContaining({ code: 'STORE_GONE' }))
    expect(other.trajectory).toHaveLength(5)
    const kept = await Runners.runTask(recorder.task({ steps: 1 }), { store, keep: { runs: 1 } })
    expect(() => other.trajectory).toThrow(expect.objectContaining({ code: 'STORE_GONE' }))
    expect(kept.trajectory).toHaveLength(1)
  })

  it('does not keep the next run from a new store', async () => {
    const { store } = storeFolder()
    for (let i = 0; i < 3; i++) {
      const response = await Runners.runTask(recorder.task({ steps: i + 1 }), { store, runId: 'r' })
      expect(response.trajectory).toHaveLength(i + 1)
      rmSync(store, { recursive: true })
    }
  })
})

describe.each([
  [
    'throws',
    () => {
      throw new Error('mine')
    },
  ],
  [
    'rejects',
    async () => {
      throw new Error('mine')
    },
  ],
])('an observer of the caller that %s', (_, observe) => {
  it.each([true, false])('as onStep ends the run with its error (store: %s)', async (stored) => {
    const { store } = storeFolder()
    const run = Runners.runTask(recorder.task({ steps: 3, ms: 20 }), { store: stored && store, onStep: observe })
    await expect(run).rejects.toThrow('mine')
  })

  it('as progress ends the run with its error, and the store says so', async () => {
    const { store } = storeFolder()
    const tasks = [sleeper.task(0, { id: 'quick' }), sleeper.task(60_000, { id: 'slow' })]
    const run = Runners.runTask(tasks, { store, runId: 'r', workerNum: 1, progress: observe })
    await expect(run).rejects.toThrow('mine')
    using file = RunFile.open('r', { store })
    expect(file.overview()).toMatchObject({
      status: 'failed',
      error: expect.stringContaining('mine'),
      counts: { success: 1 },
    })
  })

  it('as progress at the end of the run rejects the call, with all responses', async () => {
    const { store } = storeFolder()
    const run = Runners.runTask([sleeper.task(0, { id: 'quick' })], { store, runId: 'r', progress: observe })
    await expect(run).rejects.toMatchObject({ message: 'mine', responses: new Map([['quick', expect.anything()]]) })
    using file = RunFile.open('r', { store })
    expect(file.overview()).toMatchObject({ status: 'finished', counts: { success: 1 } })
  })
})
