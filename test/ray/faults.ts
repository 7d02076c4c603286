import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeEach, expect, test, vi } from 'vitest'
import { Runners } from '../../dist/index.js'
import { noting, talksLater, withChild } from '../agents/nodes.ts'
import { killStorm } from '../storm/kill-storm.ts'
import { untilStarted as allStarted, expectAllOnce, linesOf, runUntilStopped } from '../support/ledger.ts'
import { childrenOf, signal } from '../support/process-tree.ts'
import { SEED, stormTest } from '../support/storm.ts'
import { lightsCurve } from '../train/lights-curve.ts'
import { below, commandOf, type RayCluster } from './cluster.ts'
import { rayStorm } from './storm.ts'

/** Plugs are pulled on a real cluster while tasks run: every task is answered once, and right. */

export function testFaults(cluster: RayCluster): void {
  let folder: string
  let file: string

  afterAll(() => Runners.shutdown(), 60_000)
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'mw-ray-faults-'))
    file = join(folder, 'ledger')
  })
  afterEach(() => rmSync(folder, { recursive: true, force: true }))

  const SLOW = { timeout: 240_000 }

  function config(workerNum = 4) {
    const { address, tokenFile } = cluster
    return { engineName: 'ray', ray: { address, tokenFile }, workerNum, concurrency: 4 } as const
  }

  function run(count: number, ms: number, workerNum = 4) {
    const tasks = Array.from({ length: count }, (_, i) => noting.task({ ms, file, id: `t${i}` }, { id: `t${i}` }))
    return Runners.runTask(tasks, config(workerNum))
  }

  const lines = (word: 'start' | 'end') => linesOf(file, word)
  const untilStarted = (count: number) => allStarted(file, count)

  /** All workers are there: they were started one after the other as there was work for them. */
  async function untilAllPlaced(count = 4) {
    // A run that goes on meanwhile: workers that no run needs are let go after a minute.
    await using running = runUntilStopped(300, file, config())
    await expect
      .poll(() => cluster.raylets.flatMap(({ pid }) => below(pid).workers).length, { timeout: 120_000 })
      .toBeGreaterThanOrEqual(count)
    await running.stop()
    rmSync(file)
  }

  const anyOf = (kind: 'workers' | 'actors') => cluster.raylets.flatMap(({ pid }) => below(pid)[kind])[0]

  const busiest = () =>
    cluster.raylets
      .slice(1)
      .map(({ pid }) => ({ pid, ...below(pid) }))
      .sort((a, b) => b.actors.length - a.actors.length)[0]!

  /** A raylet, not the head, with a worker that has just started a task: the task does not end before the raylet is stopped. */
  async function busy() {
    const find = () => {
      const started = lines('start').map((line) => Number(line.split(' ')[2]))
      return cluster.raylets
        .slice(1)
        .map(({ pid }) => ({ pid, at: Math.max(...below(pid).workers.map((one) => started.lastIndexOf(one.pid))) }))
        .filter(({ at }) => at >= 0)
        .sort((a, b) => b.at - a.at)[0]
    }
    await expect.poll(find, { timeout: 60_000 }).toBeDefined()
    return find()!
  }

  stormTest('fewer workers: their actors give back what they took', SLOW, async () => {
    const actors = () => cluster.raylets.flatMap(({ pid }) => below(pid).actors).length
    await untilAllPlaced()
    await expect.poll(actors, { timeout: 60_000 }).toBe(4)
    expectAllOnce(await run(8, 10, 1), 8)
    await expect.poll(actors, { timeout: 60_000 }).toBe(1)
  })

  test('what workers print outside of tasks is shown with their ids', SLOW, async () => {
    const said = vi.spyOn(process.stderr, 'write').mockReturnValue(true)
    try {
      await Runners.runTask([talksLater.task('first line\nsecond line')], { ...config(1), showLogs: true })
      const lines = () =>
        said.mock.calls
          .map(([text]) => String(text))
          .join('')
          .split('\n')
      await expect.poll(lines, { timeout: 20_000 }).toContain('[ray-0] second line')
      expect(lines()).toContain('[ray-0] first line')
    } finally {
      said.mockRestore()
    }
  })

  stormTest('an actor that takes long to start its process is not given up', SLOW, async () => {
    await Runners.shutdown()
    // Whoever brings a blob to this machine holds this lock.
    const folder = readdirSync(tmpdir()).find((name) => name.startsWith(`manyworlds-ray-${userInfo().uid}-`))!
    const blobs = join(tmpdir(), folder, 'blobs')
    mkdirSync(blobs, { recursive: true, mode: 0o700 })
    const holder = spawn('flock', [join(blobs, '.lock'), 'cat'], { stdio: ['pipe', 'ignore', 'inherit'] })
    try {
      const actors = () => cluster.raylets.flatMap(({ pid }) => below(pid).actors).map(({ pid }) => pid)
      const responses = Runners.runTask([noting.task({ ms: 0, file, id: 't0' }, { id: 't0' })], {
        ...{ ...config(1), blobs: { large: new Uint8Array(100) } },
      })
      await expect.poll(actors, { timeout: 60_000 }).toHaveLength(1)
      const [first] = actors()
      // The engine checks once a second, and gives a silent actor up after 20 checks.
      await sleep(25_000)
      holder.stdin.end()
      expectAllOnce(await responses, 1)
      expect(actors()).toEqual([first])
    } finally {
      holder.stdin.end()
    }
  })

  stormTest(
    'a driver whose machine disappears behind ray://: its workers end with their lease',
    { timeout: 480_000 },
    async () => {
      await Runners.shutdown()
      const workers = () => cluster.raylets.flatMap(({ pid }) => below(pid).workers).length
      await expect.poll(workers, { timeout: 60_000 }).toBe(0)
      const driver = await startDriver()
      const all = () => [driver.pid!, ...childrenOf(driver.pid!)]
      try {
        // No connection is closed, and nothing more is said.
        for (const pid of all()) signal(pid, 'SIGSTOP')
        await expect.poll(workers, { timeout: 45_000 }).toBe(0)
      } finally {
        for (const pid of all().reverse()) signal(pid, 'SIGKILL')
      }
    },
  )

  /** A driver behind ray:// whose tasks have started. On a busy machine Ray takes too long to start a server for it: another try. */
  async function startDriver(): Promise<ChildProcess> {
    const program = fileURLToPath(new URL('../agents/ray-driver.ts', import.meta.url))
    const { clientAddress, tokenFile } = cluster
    for (let tries = 1; ; tries++) {
      const stdio = ['ignore', 'inherit', 'pipe'] as const
      const driver = spawn(process.execPath, [program, file, clientAddress, tokenFile], { stdio: [...stdio] })
      const said = text(driver.stderr!)
      const over = said.then((words) => {
        throw new Error(`the driver has ended: ${words}`)
      })
      try {
        await Promise.race([untilStarted(8), over])
        return driver
      } catch (error) {
        for (const pid of [...childrenOf(driver.pid!), driver.pid!]) signal(pid, 'SIGKILL')
        const words = await said
        if (tries === 3 || !words.includes('in time, twice'))
          throw new Error(`no task started: ${words}`, { cause: error })
      }
    }
  }

  stormTest('kill -9 of a Node worker', SLOW, async () => {
    await untilAllPlaced()
    const responses = run(60, 400)
    await untilStarted(20)
    // The one that has just started a task.
    const pid = Number(lines('start').at(-1)!.split(' ')[2])
    expect(cluster.raylets.flatMap((raylet) => below(raylet.pid).workers.map((worker) => worker.pid))).toContain(pid)
    signal(pid, 'SIGKILL')
    expectAllOnce(await responses, 60)
    expect(lines('start').length).toBeGreaterThan(60)
  })

  stormTest(
    'a training comes to the same curve as on this machine, with workers and an actor killed on the way',
    SLOW,
    async () => {
      const killed: string[] = []
      const { address, tokenFile } = cluster
      const on = { engineName: 'ray', ray: { address, tokenFile }, workerNum: 4 } as const
      const disturbed = await lightsCurve(on, (update) => {
        const kind = update === 5 ? 'actors' : 'workers'
        const one = anyOf(kind)
        if (one === undefined) return
        signal(one.pid, 'SIGKILL')
        killed.push(kind)
      })
      expect(disturbed).toBe(await lightsCurve({ workerNum: 2 }))
      expect(killed).toContain('actors')
      expect(killed).toContain('workers')
    },
  )

  test('kill -9 of an actor', SLOW, async () => {
    const responses = run(60, 400)
    await untilStarted(20)
    const actor = anyOf('actors')
    expect(actor).toBeDefined()
    signal(actor!.pid, 'SIGKILL')
    expectAllOnce(await responses, 60)
  })

  test(
    'kill -9 of an actor with its process group, as Ray does it: what a task had started ends too',
    SLOW,
    async () => {
      writeFileSync(file, '')
      const responses = Runners.runTask([withChild.task(file, { id: 'one' })], config(1))
      await expect.poll(() => readFileSync(file, 'utf8'), { timeout: 60_000 }).toMatch(/^\d+$/)
      const child = Number(readFileSync(file, 'utf8'))
      const holds = ({ pid }: { pid: number }) => childrenOf(pid).includes(child)
      const actor = cluster.raylets.flatMap(({ pid }) => below(pid).actors).find(holds)!
      const groupOf = (pid: number) =>
        Number(
          readFileSync(`/proc/${pid}/stat`, 'utf8')
            .replace(/^.*\) /s, '')
            .split(' ')[2],
        )
      const group = childrenOf(actor.pid).filter((pid) => groupOf(pid) === groupOf(actor.pid))
      // Its own group has others of this test in it, unless Ray made one for it.
      for (const pid of [...group, actor.pid]) signal(pid, 'SIGKILL')
      expect([...(await responses).values()]).toMatchObject([{ answer: child }])
      await expect.poll(() => existsSync(`/proc/${child}/stat`), { timeout: 30_000 }).toBe(false)
    },
  )

  stormTest(`kill -9 of workers again and again charges nobody (seed ${SEED})`, { timeout: 480_000 }, async () => {
    const config = { ray: { address: cluster.address, tokenFile: cluster.tokenFile } }
    const report = await killStorm({ engine: 'ray', kills: 60, seed: SEED, config })
    const nothing = { lost: [], twice: [], wronglyCharged: [], wrong: [], leftBehind: [], rightlyCharged: [] }
    expect(report).toMatchObject({ kills: 60, ...nothing })
  })

  stormTest('SIGSTOP of a raylet with all its children, then SIGCONT: what it says is too late', SLOW, async () => {
    await untilAllPlaced()
    const responses = run(24, 5000)
    await untilStarted(12)
    const { pid } = await busy()
    const stopped = below(pid).workers.map((worker) => worker.pid)
    const all = [pid, ...childrenOf(pid)]
    for (const one of all) signal(one, 'SIGSTOP')
    const ends = () => lines('end').filter((line) => stopped.includes(Number(line.split(' ')[2])))
    let before: string[] = []
    try {
      expectAllOnce(await responses, 24)
      before = ends()
    } finally {
      for (const one of all) signal(one, 'SIGCONT')
    }
    expect(lines('start').length).toBeGreaterThan(24)
    // What they were to do was done elsewhere: they do not finish it.
    await expect.poll(() => stopped.filter((one) => commandOf(one) !== ''), { timeout: 60_000 }).toEqual([])
    expect(ends()).toEqual(before)
    expectAllOnce(await run(8, 10), 8)
  })

  stormTest('kill -9 of a raylet with its children', SLOW, async () => {
    await untilAllPlaced()
    const responses = run(60, 400)
    await untilStarted(20)
    const { pid, actors } = busiest()
    expect(actors.length).toBeGreaterThan(0)
    for (const one of [pid, ...childrenOf(pid)]) signal(one, 'SIGKILL')
    expectAllOnce(await responses, 60)
  })

  stormTest('a raylet that joins by hand during a run is used, if more workers were asked for', SLOW, async () => {
    const alive = cluster.raylets.filter(({ child }) => child.exitCode === null && child.signalCode === null)
    const room = cluster.cpus * alive.length
    // How long a raylet takes to come up, nobody knows.
    await using running = runUntilStopped(300, file, config(room + 2))
    await untilStarted(20)
    expect(cluster.raylets.flatMap(({ pid }) => below(pid).workers).length).toBeLessThanOrEqual(room)
    const { pid } = await cluster.addRaylet()
    await expect.poll(() => below(pid).workers.length, { timeout: 150_000 }).toBeGreaterThan(0)
    const answers = await running.stop()
    expectAllOnce(answers, answers.size)
  })

  stormTest(
    `a storm over workers, actors and a raylet, with megabytes to and fro: all answered once (seed ${SEED})`,
    {
      timeout: 400_000,
    },
    async () => {
      const { happened, problems } = await rayStorm(cluster, SEED, file)
      console.log(`storm on Ray: ${JSON.stringify(happened)}`)
      expect(problems).toEqual([])
      expect(happened.workers).toBeGreaterThan(0)
      expect(happened.raylets).toBe(1)
    },
  )

  stormTest('kill -9 of the head: workers elsewhere end before their raylets do', SLOW, async () => {
    await Runners.shutdown()
    const [head, ...others] = cluster.raylets.filter(
      ({ child }) => child.exitCode === null && child.signalCode === null,
    )
    const workers = () => others.flatMap(({ pid }) => below(pid).workers.map((worker) => worker.pid))
    // By way of the head, so that nobody is heard any more. Otherwise the driver goes on for a minute before it notices.
    const { clientAddress: address, tokenFile } = cluster
    const tasks = Array.from({ length: 100 }, (_, i) => noting.task({ ms: 600_000, file, id: `t${i}` }))
    const responses = Runners.runTask(tasks, { ...config(6), ray: { address, tokenFile } })
    responses.catch(() => {})
    await expect.poll(() => workers().length, { timeout: 150_000 }).toBeGreaterThan(0)
    const there = workers()
    for (const one of [head!.pid, ...childrenOf(head!.pid)]) signal(one, 'SIGKILL')
    await expect.poll(() => there.filter((pid) => commandOf(pid) !== ''), { timeout: 60_000 }).toEqual([])
    // They live for a minute, and so would the workers.
    expect(others.every(({ child }) => child.exitCode === null && child.signalCode === null)).toBe(true)
    await Runners.shutdown()
  })
}
