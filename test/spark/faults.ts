import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeEach, expect, test } from 'vitest'
import { type RunConfig, Runners } from '../../dist/index.js'
import { noting } from '../agents/nodes.ts'
import { killStorm } from '../storm/kill-storm.ts'
import { untilStarted as allStarted, expectAllOnce, linesOf, runUntilStopped } from '../support/ledger.ts'
import { childrenOf, pids, signal } from '../support/process-tree.ts'
import { IN_STORM, SEED, stormTest } from '../support/storm.ts'
import { commandOf, endTree, environmentOf, type Member, type SparkCluster } from './cluster.ts'
import { sumOfThousand } from './ordinary-query.ts'

/** Plugs are pulled on a real cluster while tasks run: every task is answered once, and right. */

export function testFaults(cluster: SparkCluster): void {
  let folder: string
  let file: string

  afterAll(() => Runners.shutdown(), 60_000)
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'mw-spark-faults-'))
    file = join(folder, 'ledger')
  })
  afterEach(() => rmSync(folder, { recursive: true, force: true }))

  const SLOW = { timeout: 240_000 }

  const config = (workerNum = 4): RunConfig => ({
    ...{ engineName: 'spark', spark: { remote: cluster.remote }, workerNum, concurrency: 4, store: false },
  })

  function run(count: number, ms: number, workerNum = 4) {
    const tasks = Array.from({ length: count }, (_, i) => noting.task({ ms, file, id: `t${i}` }, { id: `t${i}` }))
    return Runners.runTask(tasks, config(workerNum))
  }

  const lines = (word: 'start' | 'end') => linesOf(file, word)
  const untilStarted = (count: number) => allStarted(file, count)

  const slots = () => cluster.slots()
  const nodeWorkers = () => slots().flatMap((slot) => childrenOf(slot))

  /** The Spark worker that has most of the slots. */
  const busiest = (): Member =>
    cluster.workers
      .map((worker) => ({ worker, slots: cluster.slotsOf(cluster.executorOf(worker) ?? 0).length }))
      .sort((a, b) => b.slots - a.slots)[0]!.worker

  /** All workers are there: they were started one after the other as there was work for them. */
  async function untilAllPlaced(count = 4) {
    // A run that goes on meanwhile: workers that no run needs are let go after a minute.
    await using running = runUntilStopped(300, file, config())
    await expect.poll(() => slots().length, { timeout: 120_000 }).toBe(count)
    await running.stop()
    rmSync(file)
  }

  stormTest('kill -9 of a Node worker', SLOW, async () => {
    await untilAllPlaced()
    const responses = run(60, 1000)
    await untilStarted(20)
    // One that is at work.
    const [, , pid] = lines('start').at(-1)!.split(' ')
    expect(nodeWorkers()).toContain(Number(pid))
    signal(Number(pid), 'SIGKILL')
    expectAllOnce(await responses, 60)
    expect(lines('start').length).toBeGreaterThan(60)
  })

  stormTest('kill -9 of a host: Spark starts another', SLOW, async () => {
    await untilAllPlaced()
    const before = slots()
    const responses = run(60, 400)
    await untilStarted(20)
    signal(before[0]!, 'SIGKILL')
    expectAllOnce(await responses, 60)
    await expect.poll(() => slots().filter((pid) => pid !== before[0]).length, { timeout: 60_000 }).toBe(4)
  })

  test('kill -9 of an executor', SLOW, async () => {
    await untilAllPlaced()
    const responses = run(60, 400)
    await untilStarted(20)
    const executor = cluster.executorOf(busiest())!
    const its = childrenOf(executor)
    expect(its.length).toBeGreaterThan(0)
    signal(executor, 'SIGKILL')
    expectAllOnce(await responses, 60)
    // What it had started has noticed, and is gone.
    await expect.poll(() => its.filter((pid) => commandOf(pid) !== ''), { timeout: 60_000 }).toEqual([])
  })

  stormTest(
    'the same host is killed until Spark gives the whole query up: others go on, and the missing one is asked for again',
    SLOW,
    async () => {
      await untilAllPlaced()
      const [victim, ...others] = slots()
      const responses = run(200, 400)
      await untilStarted(20)
      signal(victim!, 'SIGKILL')
      const killed = [victim!]
      while (killed.length < 4) {
        // A killed process is in the list until the kernel has removed it.
        const next = () => slots().find((pid) => !others.includes(pid) && !killed.includes(pid))
        await expect.poll(next, { timeout: 60_000, interval: 50 }).toBeDefined()
        const pid = next()
        if (pid === undefined) continue
        signal(pid, 'SIGKILL')
        killed.push(pid)
      }
      expectAllOnce(await responses, 200)
      await expect.poll(() => slots().length, { timeout: 60_000 }).toBe(4)
      expect(slots()).toEqual(expect.arrayContaining(others))
    },
  )

  stormTest(`kill -9 of workers again and again charges nobody (seed ${SEED})`, { timeout: 480_000 }, async () => {
    const config = { spark: { remote: cluster.remote } }
    const report = await killStorm({ engine: 'spark', kills: 60, seed: SEED, config })
    const nothing = { lost: [], twice: [], wronglyCharged: [], wrong: [], leftBehind: [], rightlyCharged: [] }
    expect(report).toMatchObject({ kills: 60, ...nothing })
  })

  stormTest('SIGSTOP of a host with its worker, then SIGCONT: what it says is too late', SLOW, async () => {
    await untilAllPlaced()
    const responses = run(24, 5000)
    await untilStarted(12)
    // A host with a worker that has just started a task: it cannot end before it is stopped.
    const [, , pid] = lines('start').at(-1)!.split(' ')
    const slot = slots().find((one) => childrenOf(one).includes(Number(pid)))
    const all = [slot!, ...childrenOf(slot!)]
    for (const one of all) signal(one, 'SIGSTOP')
    try {
      expectAllOnce(await responses, 24)
    } finally {
      for (const one of all) signal(one, 'SIGCONT')
    }
    expect(lines('start').length).toBeGreaterThan(24)
    expectAllOnce(await run(8, 10), 8)
  })

  stormTest(
    'queries run beside the slots; fewer workers give places back, and after the end there is none',
    SLOW,
    async () => {
      // All places but the reserved one.
      await untilAllPlaced(4)
      const responses = run(40, 500, 5)
      await untilStarted(10)
      expect(await sumOfThousand(cluster)).toBe(499_500)
      expectAllOnce(await responses, 40)
      expectAllOnce(await run(4, 10, 1), 4)
      await expect.poll(() => slots().length, { timeout: 60_000 }).toBe(1)
      await Runners.shutdown()
      await expect.poll(slots, { timeout: 30_000 }).toEqual([])
    },
  )

  stormTest('kill -9 of a whole Spark worker', SLOW, async () => {
    await untilAllPlaced()
    const responses = run(60, 400)
    await untilStarted(20)
    const worker = busiest()
    endTree(worker.pid)
    expectAllOnce(await responses, 60)
    // Three cores are left. One of them stays free for queries, also if no other machine comes.
    await using more = runUntilStopped(500, file, config())
    await expect.poll(() => slots().length, { timeout: 120_000 }).toBe(2)
    expect(await sumOfThousand(cluster)).toBe(499_500)
    await cluster.addWorker()
    await expect.poll(() => slots().length, { timeout: 120_000 }).toBe(4)
    const answers = await more.stop()
    expectAllOnce(answers, answers.size)
  })

  test.each(IN_STORM ? ['cluster', 'inLocal'] : ['cluster'])(
    'kill -9 of the driver, %s: nothing of ours is left',
    SLOW,
    async (where) => {
      await Runners.shutdown()
      const mark = `TEST_MARK=${randomUUID()}`
      const [name, value] = mark.split('=') as [string, string]
      const { SPARK_REMOTE: _, ...env } = process.env
      const driver = spawn(
        process.execPath,
        [fileURLToPath(new URL('../agents/spark-driver.ts', import.meta.url)), file],
        {
          env: { ...env, [name]: value, ...(where === 'cluster' ? { SPARK_REMOTE: cluster.remote } : {}) },
          stdio: ['ignore', 'ignore', 'inherit'],
        },
      )
      try {
        await untilStarted(2)
      } finally {
        driver.kill('SIGKILL')
      }
      const left = () => [...pids().filter((pid) => environmentOf(pid).includes(mark)), ...slots()].map(commandOf)
      await expect.poll(left, { timeout: 60_000 }).toEqual([])
    },
  )

  stormTest('kill -9 of the JVM of a Spark of one’s own: one error, at once', SLOW, async () => {
    const tasks = Array.from({ length: 8 }, (_, i) => noting.task({ ms: 600_000, file, id: `t${i}` }))
    const responses = Runners.runTask(tasks, { engineName: 'spark', inLocal: true, workerNum: 2, store: false })
    responses.catch(() => {})
    await untilStarted(8)
    const host = childrenOf(process.pid).find((pid) => commandOf(pid).includes('spark_host.py'))
    signal(childrenOf(host!)[0]!, 'SIGKILL')
    await expect(responses).rejects.toMatchObject({
      code: 'SPARK_FAILED',
      message: expect.stringContaining('has ended'),
    })
  })

  stormTest(
    'kill -9 of the Connect server, and another in its place: the slots are asked for again',
    SLOW,
    async () => {
      await untilAllPlaced()
      const responses = run(60, 400)
      await untilStarted(20)
      await cluster.restartServer()
      expectAllOnce(await responses, 60)
    },
  )

  stormTest('kill -9 of the Connect server: one error that says so, and the driver can end', SLOW, async () => {
    await Runners.shutdown()
    const program = fileURLToPath(new URL('../agents/spark-driver.ts', import.meta.url))
    const driver = spawn(process.execPath, [program, file, '4'], {
      env: { ...process.env, SPARK_REMOTE: cluster.remote },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    let said = ''
    driver.stdout.setEncoding('utf8').on('data', (text: string) => {
      said += text
    })
    const ended = new Promise<number | null>((resolve) => driver.once('close', resolve))
    try {
      await untilStarted(10)
      endTree(cluster.server.pid)
      expect(await ended).toBe(0)
      expect(said).toBe('failed SPARK_FAILED\nshut down\n')
    } finally {
      driver.kill('SIGKILL')
    }
  })
}
