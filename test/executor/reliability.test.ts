import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { DistributedExecutor, type EngineEvents, LocalRuntime, type Placement, Runners } from 'manyworlds'
import { afterAll, describe, expect, it } from 'vitest'
import { echo, sleeper } from '../agents/basics.ts'
import { ledger } from '../agents/ledger.ts'
import { inTurn } from '../agents/subtasks.ts'
import { deafBlock, environment, garbler, hoarder, lateBlocker, nativeBlock, pid } from '../agents/workers.ts'
import { runScript } from '../support/run-script.ts'

afterAll(() => Runners.shutdown())

const answers = (responses: Map<string, { answer?: unknown }>) => [...responses.values()].map(({ answer }) => answer)
const statuses = (responses: Map<string, { status: string }>) => {
  const counts: Record<string, number> = {}
  for (const { status } of responses.values()) counts[status] = (counts[status] ?? 0) + 1
  return counts
}

it('a worker that is to be replaced runs the sub-tasks that its own tasks wait for, if nobody else can', async () => {
  const tasks = Array.from({ length: 4 }, () => inTurn.task(4))
  const config = { workerNum: 1, concurrency: 2, recycleAfterTasks: 1, store: false, deadlineMs: 60_000 } as const
  expect(answers(await Runners.runTask(tasks, config))).toEqual([10, 10, 10, 10])
}, 90_000)

it('many runs at once in one program all come to their end', async () => {
  for (let round = 0; round < 3; round++) {
    const runs = Array.from({ length: 500 }, (_, i) => Runners.runTask(echo.task(i), { workerNum: 2 }))
    expect((await Promise.all(runs)).map(({ answer }) => answer)).toEqual(Array.from({ length: 500 }, (_, i) => i))
  }
})

it('a task that is cancelled while its large input is on its way does not run', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'mw-cancel-'))
  const file = join(folder, 'ledger')
  const stop = new AbortController()
  const config = { workerNum: 1, concurrency: 1, store: false } as const
  // The worker has the agent's code, so the next task is sent as soon as it is read.
  await Runners.runTask(ledger.task({ ledger: file }, { id: 'small' }), config)
  function* tasks() {
    // By then a part of it is sent: all of it takes longer.
    setTimeout(() => stop.abort(), 10)
    yield ledger.task({ ledger: file, ms: 60_000, say: 'x'.repeat(60_000_000) }, { id: 'large' })
  }
  const responses = await Runners.runTask(tasks(), { ...config, signal: stop.signal })
  expect(statuses(responses)).toEqual({ cancelled: 1 })
  // The worker is the same and has read everything by then.
  expect(await Runners.runTask(echo.task(1), config)).toMatchObject({ answer: 1 })
  expect(readFileSync(file, 'utf8')).toBe('small\n')
  rmSync(folder, { recursive: true })
})

/** Gives up while a worker lives. */
class GivesUp extends LocalRuntime {
  static giveUp = async () => {}

  override start(placement: Placement, events: EngineEvents, signal: AbortSignal): Promise<void> {
    GivesUp.giveUp = async () => {
      events.failed(new Error('no more machines'))
      // Nothing is started any more, and the last one goes.
      await this.scale(0)
    }
    return super.start(placement, events, signal)
  }
}

describe('when workers are taken away', () => {
  it('the last one of an engine that has given up: the run fails with the reason', async () => {
    const config = { workerNum: 1, concurrency: 1, cls: GivesUp, maxAttempts: 2, backoffMs: 1 }
    const left = (async () => {
      for await (const { worker } of Runners.streamTask(
        [1, 60_000].map((ms) => sleeper.task(ms)),
        config,
      )) {
        await GivesUp.giveUp()
        try {
          process.kill(worker!.pid!, 'SIGKILL')
        } catch {
          // It has gone with the rest.
        }
      }
    })()
    await expect(left).rejects.toMatchObject({
      code: 'ENGINE_FAILED',
      message: expect.stringContaining('no more machines'),
    })
  })

  it('a run that is cancelled before a task of it was read answers all of them', async () => {
    // A pool of its own, whose only worker is not there yet, and which has work enough.
    const conf = { workerNum: 1, concurrency: 1, env: { COLD_POOL: '1' } }
    const many = () => Array.from({ length: 90 }, () => pid.task(10))
    const abort = new AbortController()
    const runs = [
      Runners.runTask(many().slice(0, 5), conf),
      Runners.runTask(many(), { ...conf, signal: abort.signal }),
      Runners.runTask(many(), { ...conf, deadlineMs: 20 }),
    ]
    setTimeout(() => abort.abort(), 20)
    expect((await Promise.all(runs)).map(({ size }) => size)).toEqual([5, 90, 90])
  })

  it('a crash leaves no worker out of work', { timeout: 120_000 }, async () => {
    const conf = { workerNum: 2, concurrency: 4, maxAttempts: 3, backoffMs: 1 }
    for (let round = 0; round < 5; round++) {
      let killed = false
      for await (const { worker, success } of Runners.streamTask(
        Array.from({ length: 40 }, () => pid.task(20)),
        conf,
      )) {
        expect(success).toBe(true)
        if (killed) continue
        killed = true
        process.kill(worker!.pid!, 'SIGKILL')
      }
      // A run may be over before the new worker is there.
      const used = async () => {
        const tasks = Array.from({ length: 40 }, () => pid.task(20))
        return new Set(answers(await Runners.runTask(tasks, conf))).size
      }
      await expect.poll(used, { timeout: 40_000 }).toBe(2)
    }
  })

  it('a worker that is stopped (SIGSTOP) is noticed, and its tasks run elsewhere', async () => {
    let stopped: number | undefined
    const seen: string[] = []
    for await (const { id, success, worker } of Runners.streamTask(
      Array.from({ length: 40 }, (_, i) => pid.task(200, { id: `t${i}` })),
      { workerNum: 2, concurrency: 4, maxAttempts: 3, backoffMs: 1 },
    )) {
      seen.push(id)
      expect(success).toBe(true)
      if (stopped !== undefined) continue
      stopped = worker!.pid!
      process.kill(stopped, 'SIGSTOP')
    }
    expect(new Set(seen).size).toBe(40)
    await expect.poll(() => alive(stopped!)).toBe(false)
  })

  it('a worker that sends garbage is replaced, and its neighbours complete', async () => {
    const tasks = [garbler.task(undefined, { id: 'garbler' }), ...Array.from({ length: 20 }, () => sleeper.task(100))]
    const responses = await Runners.runTask(tasks, { workerNum: 1, concurrency: 32 })
    expect(statuses(responses)).toEqual({ crashed: 1, success: 20 })
    expect(responses.get('garbler')!.status).toBe('crashed')
  })

  it.each([
    ['has ended', echo.task(1, { timeoutMs: 300 })],
    ['timed out and whose code still runs', pid.task(20_000, { timeoutMs: 1 })],
  ])('a native call within its time is left alone beside a task that %s', async (_, other) => {
    const tasks = [other, deafBlock.task(5000, { id: 'blocker', timeoutMs: 60_000, rerun: 'never' })]
    const responses = await Runners.runTask(tasks, { workerNum: 1, concurrency: 4, maxAttempts: 1, store: false })
    expect(responses.get('blocker')).toMatchObject({ status: 'success', answer: 'done' })
  })

  it('a loop that is blocked in a native call is ended, and the innocent are told apart by running them again', async () => {
    const tasks = [nativeBlock.task(600_000, { id: 'blocker' }), ...Array.from({ length: 5 }, () => sleeper.task(100))]
    // Time enough for the innocent, also when the machine holds them up.
    const responses = await Runners.runTask(tasks, { workerNum: 1, concurrency: 8, timeoutMs: 4000 })
    expect(responses.get('blocker')!.status).toBe('timeout')
    expect(statuses(responses)).toEqual({ timeout: 1, success: 5 })
  })
})

describe('code that goes on when its task is over', () => {
  it.each(['after its time-out', 'after its answer'] as const)(
    'and blocks the worker %s does not hold up the next tasks',
    async (when) => {
      const tasks = [
        // It answers at once, or never.
        lateBlocker.task(when, { id: 'blocker', timeoutMs: when === 'after its answer' ? 10_000 : 200 }),
        ...Array.from({ length: 10 }, () => sleeper.task(700, { timeoutMs: 8000 })),
      ]
      const responses = await Runners.runTask(tasks, { workerNum: 1, concurrency: 4 })
      expect(responses.get('blocker')!.status).toBe(when === 'after its answer' ? 'success' : 'timeout')
      const others = [...responses.values()].filter(({ id }) => id !== 'blocker')
      expect(others.map(({ status }) => status)).toEqual(Array(10).fill('success'))
    },
  )
})

describe('workers between calls', () => {
  it('are kept warm, and shared by runs at the same time', async () => {
    const conf = { workerNum: 2, concurrency: 3 }
    const first = answers(
      await Runners.runTask(
        Array.from({ length: 12 }, () => pid.task(20)),
        conf,
      ),
    )
    const [second, third] = await Promise.all(
      [1, 2].map(() =>
        Runners.runTask(
          Array.from({ length: 12 }, () => pid.task(20)),
          conf,
        ),
      ),
    )
    const used = new Set([...first, ...answers(second!), ...answers(third!)])
    // On a busy machine all may be done before the second worker is there.
    expect(used.size).toBeLessThanOrEqual(2)
  })

  it('are not shared with a call that has another environment', async () => {
    const value = async (env: Record<string, string>) =>
      (await Runners.runTask(environment.task('WHERE'), { env })).answer
    expect(await value({ WHERE: 'here' })).toBe('here')
    expect(await value({ WHERE: 'there' })).toBe('there')
    expect(await value({ WHERE: 'here' })).toBe('here')
  })

  it('are not more than there are tasks', async () => {
    const executor = new DistributedExecutor({ workerNum: 8, concurrency: 1 })
    executor.submitTask(pid.task(50))
    const first = await executor.collectResults()
    for (let i = 0; i < 30; i++) executor.submitTask(pid.task(300))
    const used = new Set(answers(first))
    while (executor.pending > 0) for (const answer of answers(await executor.collectResults())) used.add(answer)
    await executor.shutdown()
    expect(used.size).toBeGreaterThan(1)
    expect(used.size).toBeLessThanOrEqual(8)
  })

  it('are replaced after so many tasks', async () => {
    const tasks = Array.from({ length: 100 }, () => pid.task(1))
    const responses = await Runners.runTask(tasks, { workerNum: 1, concurrency: 4, recycleAfterTasks: 20 })
    expect(statuses(responses)).toEqual({ success: 100 })
    expect(new Set(answers(responses)).size).toBeGreaterThanOrEqual(3)
  })

  it('are replaced when they have grown too large', async () => {
    const pids = new Set<unknown>()
    for (let i = 0; i < 6; i++) {
      const conf = { workerNum: 1, concurrency: 1, recycleAboveMb: 300 }
      pids.add((await Runners.runTask(hoarder.task(150), conf)).answer)
      await sleep(1100)
      pids.add((await Runners.runTask(hoarder.task(1), conf)).answer)
    }
    expect(pids.size).toBeGreaterThan(1)
  })

  it('go when they were not wanted for a while', async () => {
    const conf = { workerNum: 1, concurrency: 5, keepWarmMs: 100 }
    const { answer } = await Runners.runTask(pid.task(1), conf)
    await expect.poll(() => alive(answer as number), { timeout: 40_000 }).toBe(false)
    const again = await Runners.runTask(pid.task(1), conf)
    expect(again.success).toBe(true)
  })

  it('do not keep a program from ending, and Runners.shutdown() settles on an idle pool', async () => {
    await Runners.runTask(echo.task(1))
    await Runners.shutdown()
    expect((await Runners.runTask(echo.task(2))).answer).toBe(2)
  })
})

it('more workers than can be placed are capped, with one line to say so', async () => {
  const executor = new DistributedExecutor({ workerNum: 50_000 })
  executor.submitTask(echo.task('fine'))
  expect(answers(await executor.collectResults())).toEqual(['fine'])
  await executor.shutdown()
})

it('a task that requires a label no worker has is answered at once', async () => {
  const responses = await Runners.runTask([echo.task(1, { id: 'gpu', requires: ['gpu'] }), echo.task(2)], {
    workerNum: 1,
  })
  expect(responses.get('gpu')!.error!.code).toBe('REQUIRES_UNMET')
  expect(statuses(responses)).toEqual({ failed: 1, success: 1 })
})

it('also when no other task is in the run', async () => {
  const response = await Runners.runTask(echo.task(1, { requires: ['gpu'] }))
  expect(response.error!.code).toBe('REQUIRES_UNMET')
})

it('a program that forgets shutdown() of its executor still ends', async () => {
  const { code, stdout } = await runScript('forgets-shutdown.ts')
  expect([code, stdout]).toEqual([0, 'got 2\n'])
})

it('a response that failed can be written to a log as JSON, with its error', async () => {
  const logged = JSON.parse(JSON.stringify(await Runners.runTask(echo.task(1, { requires: ['gpu'] })))) as unknown
  expect(logged).toMatchObject({
    status: 'failed',
    error: { code: 'REQUIRES_UNMET', message: expect.stringContaining('gpu') },
  })
})

function alive(process_: number): boolean {
  try {
    return process.kill(process_, 0)
  } catch {
    return false
  }
}
