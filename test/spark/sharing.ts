import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeEach, expect } from 'vitest'
import { localRelation, sql } from '../../dist/engines/spark/connect/plans.js'
import { Runners } from '../../dist/index.js'
import { noting } from '../agents/nodes.ts'
import { expectAllOnce, linesOf, runUntilStopped, untilStarted } from '../support/ledger.ts'
import { childrenOf } from '../support/process-tree.ts'
import { stormTest } from '../support/storm.ts'
import type { SparkCluster } from './cluster.ts'
import { inSession, sumOfThousand } from './ordinary-query.ts'

/** Several drivers, each a process, on one Connect server with six cores: five for workers, one for queries. */

export function testSharing(cluster: SparkCluster): void {
  let folder: string
  const drivers = new Set<ChildProcess>()

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'mw-spark-sharing-'))
  })
  afterEach(() => {
    for (const driver of drivers) driver.kill('SIGKILL')
    drivers.clear()
    rmSync(folder, { recursive: true, force: true })
  })
  afterAll(() => Runners.shutdown(), 60_000)

  const SLOW = { timeout: 240_000 }

  const slots = () => cluster.slots()

  /** A program of its own. `ended`: what it printed. */
  function start(script: string, ...args: string[]) {
    const path = fileURLToPath(new URL(`../agents/${script}`, import.meta.url))
    const child = spawn(process.execPath, [path, ...args], {
      env: { ...process.env, SPARK_REMOTE: cluster.remote },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    drivers.add(child)
    const said = { stdout: '', stderr: '' }
    for (const name of ['stdout', 'stderr'] as const)
      child[name].setEncoding('utf8').on('data', (text: string) => {
        said[name] += text
      })
    const ended = new Promise<number | null>((resolve) => child.once('close', resolve))
    return { child, said, ended }
  }

  stormTest('two drivers whose tasks come from Spark and whose answers go there: both finish', SLOW, async () => {
    const both = [1, 2].map((number) => start('spark-pipeline.ts', '4000', join(folder, `answers-${number}`)))
    const codes = Promise.all(both.map(({ ended }) => ended))
    let over = false
    void codes.then(() => {
      over = true
    })
    for (; !over; await sleep(1000)) expect(await sumOfThousand(cluster)).toBe(499_500)
    for (const { said } of both) {
      expect(said.stdout, said.stderr).toBe('{"rows":4000,"batches":10}\n')
      // Each says that it does not have the cluster to itself.
      expect(said.stderr).toMatch(/cores of this Spark are for workers, shared with \S+:\d+|waits for cores/)
    }
    expect(await codes).toEqual([0, 0])
  })

  stormTest('a driver gives cores to one that comes later, and takes them again when that is gone', SLOW, async () => {
    const first = join(folder, 'first')
    const second = join(folder, 'second')
    const config = { workerNum: 5, concurrency: 1, store: false } as const
    await using running = runUntilStopped(1000, first, {
      ...{ engineName: 'spark', spark: { remote: cluster.remote }, ...config },
    })
    await expect.poll(() => slots().length, { timeout: 60_000 }).toBe(5)
    const other = start('spark-driver.ts', second)
    await untilStarted(second, 2)
    const said = () => other.said.stderr
    await expect.poll(said).toContain(`waiting for a core: 5 cores of this Spark are for workers, shared with`)
    expect(said()).toContain(`:${process.pid} (has 5)`)
    // Both work, and the reserved core is still free.
    expect(slots().length).toBeLessThanOrEqual(5)
    expect(await sumOfThousand(cluster)).toBe(499_500)
    const itsWorkers = new Set(linesOf(second, 'start').map((line) => Number(line.split(' ')[2])))
    const itsSlots = slots().filter((slot) => childrenOf(slot).some((pid) => itsWorkers.has(pid)))
    expect(itsSlots.length).toBeGreaterThan(0)
    other.child.kill('SIGKILL')
    // All five cores, and none of them in a slot of the other.
    const ours = () => slots().filter((slot) => !itsSlots.includes(slot)).length
    await expect.poll(() => slots().filter((slot) => itsSlots.includes(slot)), { timeout: 60_000 }).toEqual([])
    await expect.poll(ours, { timeout: 60_000 }).toBe(5)
    const answers = await running.stop()
    expectAllOnce(answers, answers.size)
    await Runners.shutdown()
  })

  stormTest('workers that are only kept warm give way to another driver', SLOW, async () => {
    const config = { engineName: 'spark', spark: { remote: cluster.remote }, workerNum: 5, store: false } as const
    const file = join(folder, 'warm')
    const tasks = Array.from({ length: 10 }, (_, i) => noting.task({ ms: 1000, file, id: `t${i}` }, { id: `t${i}` }))
    expectAllOnce(await Runners.runTask(tasks, { ...config, concurrency: 1 }), 10)
    await expect.poll(() => slots().length, { timeout: 60_000 }).toBe(5)
    const other = start('spark-pipeline.ts', '100', join(folder, 'answers'))
    expect(await other.ended, other.said.stderr).toBe(0)
    // And come back when there is work again.
    rmSync(file)
    expectAllOnce(await Runners.runTask(tasks, { ...config, concurrency: 1 }), 10)
    await Runners.shutdown()
  })

  stormTest('a driver that follows one that was killed does not wait for the cores of the dead', SLOW, async () => {
    const killed = start('spark-driver.ts', join(folder, 'killed'), '5')
    await untilStarted(join(folder, 'killed'), 20)
    killed.child.kill('SIGKILL')
    await killed.ended
    const next = start('spark-driver.ts', join(folder, 'next'), '5')
    await untilStarted(join(folder, 'next'), 20)
    expect(next.said.stderr).not.toMatch(/waiting for a core|shared with/)
    next.child.kill('SIGKILL')
    await next.ended
    await expect.poll(() => slots(), { timeout: 60_000 }).toEqual([])
  })

  stormTest(
    'kill -9 of a driver whose slots still wait for a core: they are gone soon after they start',
    SLOW,
    async () => {
      const block = join(folder, 'block')
      writeFileSync(block, '')
      const query = `SELECT TRANSFORM(id) USING 'while [ -e ${block} ]; do sleep 0.2; done' AS (x) FROM {rows}`
      const rows = localRelation({ id: ['1', '2', '3', '4', '5', '6'] })
      await inSession(cluster, async (session) => {
        await session.setConfig({ 'spark.sql.leafNodeDefaultParallelism': '100' })
        let running = 0
        const blocked = session.run(sql(query, { rows }), {
          onProgress: ({ inflight }) => {
            running = inflight
          },
        })
        await expect.poll(() => running, { timeout: 60_000 }).toBe(6)
        const driver = start('spark-driver.ts', join(folder, 'ledger'))
        await expect.poll(() => driver.said.stderr, { timeout: 60_000 }).toContain('Spark has not started a worker yet')
        driver.child.kill('SIGKILL')
        rmSync(block)
        await blocked
      })
      const free = Date.now()
      let seen = 0
      await expect
        .poll(
          () => {
            if (slots().length > 0) seen = Date.now()
            // Spark starts them again and again; so long without any, and it has given them up.
            return seen > 0 && Date.now() - seen > 6000
          },
          { timeout: 60_000, interval: 50 },
        )
        .toBe(true)
      process.stderr.write(`slots of a killed driver were gone ${seen - free} ms after their cores were free\n`)
      // Some seconds on a machine that has nothing else to do.
      expect(seen - free).toBeLessThan(45_000)
    },
  )
}
