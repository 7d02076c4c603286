import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { Runners } from '../../dist/index.js'
import { alone, noting, whereAmI } from '../agents/nodes.ts'
import { freePort } from '../support/free-port.ts'
import { linesOf } from '../support/ledger.ts'
import { childrenOf, signal } from '../support/process-tree.ts'
import { type Daemon, startNode } from './daemon.ts'
import { startProxy } from './proxy.ts'

/** Plugs are pulled while tasks run: every task is answered once, and right. */

const SOON = { timeout: 60_000 }
const SLOW = { timeout: 240_000 }

let folder: string
let file: string
const started: Daemon[] = []

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'mw-faults-'))
  file = join(folder, 'ledger')
})

afterEach(async () => {
  await Runners.shutdown()
  for (const daemon of started.splice(0)) {
    for (const pid of [daemon.pid, ...childrenOf(daemon.pid)]) signal(pid, 'SIGCONT')
    await daemon.kill('SIGKILL')
  }
  rmSync(folder, { recursive: true, force: true })
})

async function nodes(count: number): Promise<Daemon[]> {
  const daemons = await Promise.all(Array.from({ length: count }, () => startNode()))
  started.push(...daemons)
  return daemons
}

const addressesOf = (daemons: readonly { address: string }[]) => daemons.map(({ address }) => address)

function signalAll(pid: number, name: NodeJS.Signals): void {
  for (const one of [pid, ...childrenOf(pid)]) signal(one, name)
}

/** The worker that has started a task last, and its node. */
function atWork(daemons: readonly Daemon[]): { daemon: Daemon; worker: number } {
  const started = linesOf(file, 'start').map((line) => Number(line.split(' ')[2]))
  for (const worker of started.reverse()) {
    const daemon = daemons.find(({ pid }) => childrenOf(pid).includes(worker))
    if (daemon !== undefined) return { daemon, worker }
  }
  throw new Error('no worker has started a task')
}

function tasks(count: number, ms: number) {
  return Array.from({ length: count }, (_, i) => noting.task({ ms, file, id: `t${i}` }, { id: `t${i}` }))
}

async function ledgerHas(pattern: RegExp, times = 1): Promise<void> {
  await expect
    .poll(() => {
      try {
        return readFileSync(file, 'utf8').match(new RegExp(pattern, 'gm'))?.length ?? 0
      } catch {
        return 0
      }
    }, SOON)
    .toBeGreaterThanOrEqual(times)
}

async function run(addresses: readonly string[], count: number, ms: number, concurrency = 4) {
  const lines: string[] = []
  const responses = Runners.runTask(tasks(count, ms), {
    engineName: 'nodes',
    nodes: { addresses },
    concurrency,
    maxAttempts: 1,
  })
  return { responses, lines }
}

function expectAllOnce(
  responses: ReadonlyMap<string, { success: boolean; answer?: unknown; attempts: number }>,
  count: number,
) {
  expect(responses.size).toBe(count)
  for (const [id, response] of responses) {
    expect(response.success, id).toBe(true)
    expect(response.answer).toBe(id)
    expect(response.attempts).toBe(1)
  }
}

test('a node that is killed with kill -9 loses nothing: its tasks go to the others', SLOW, async () => {
  const daemons = await nodes(3)
  const { responses } = await run(addressesOf(daemons), 60, 400)
  await ledgerHas(/^end/, 5)
  const { daemon } = atWork(daemons)
  const children = childrenOf(daemon.pid)
  await daemon.kill('SIGKILL')
  expectAllOnce(await responses, 60)
  await expect.poll(() => children.filter((pid) => isAlive(pid)), SOON).toEqual([])
})

test('a worker that is killed is replaced by its node, without a new connection', SLOW, async () => {
  const daemons = await nodes(2)
  const { responses } = await run(addressesOf(daemons), 40, 400)
  await ledgerHas(/^end/, 5)
  const { daemon, worker } = atWork(daemons)
  signal(worker, 'SIGKILL')
  expectAllOnce(await responses, 40)
  expect(daemon.output()).not.toContain('has left')
})

test('a node that is lost is used again when it is back', SLOW, async () => {
  const [second] = await nodes(1)
  // A port that no connection gets by chance while the node is down.
  const first = await startNode({ port: await freePort() })
  started.push(first)
  const addresses = addressesOf([first, second!])
  const { responses } = await run(addresses, 60, 300, 2)
  await ledgerHas(/^end/, 4)
  await first.kill('SIGKILL')
  const again = await startNode({ port: first.port })
  started.push(again)
  expectAllOnce(await responses, 60)
  // It may have come back when all was given out; the next run finds it.
  const pids = new Set<unknown>()
  await expect
    .poll(async () => {
      const found = await Runners.runTask(
        Array.from({ length: 16 }, () => whereAmI.task(50)),
        { engineName: 'nodes', nodes: { addresses }, concurrency: 2 },
      )
      for (const { answer } of found.values()) pids.add(answer)
      return pids.has(again.pid)
    }, SOON)
    .toBe(true)
})

test(
  'a node that is stopped with all its children counts as lost; when it goes on, what it says is too late',
  SLOW,
  async () => {
    const daemons = await nodes(2)
    const { responses } = await run(addressesOf(daemons), 16, 4000)
    await ledgerHas(/^start/, 8)
    // It has just started a task, which cannot end before the node is stopped.
    const { daemon } = atWork(daemons)
    signalAll(daemon.pid, 'SIGSTOP')
    expectAllOnce(await responses, 16)
    expect(linesOf(file, 'start').length).toBeGreaterThan(16)
    signalAll(daemon.pid, 'SIGCONT')
    // Its lease is over: what it was doing is ended, and the node can be used again.
    await expect.poll(() => daemon.output(), SOON).toContain('has left')
    const later = await Runners.runTask(tasks(8, 10), {
      engineName: 'nodes',
      nodes: { addresses: addressesOf(daemons) },
    })
    expectAllOnce(later, 8)
  },
)

/** Long enough for a connection to be given up, and as far as possible from the 15 s after which a node is lost. */
const CUT_MS = 8000

test.each([
  ['without a word', 'cut'],
  ['with a reset, and new calls are refused', 'crash'],
] as const)('a link that is cut for eight seconds, %s, costs eight seconds, and no work', SLOW, async (_how, how) => {
  const [daemon] = await nodes(1)
  const proxy = await startProxy(daemon!.port)
  try {
    const { responses } = await run([`127.0.0.1:${proxy.port}`], 12, 3000)
    await ledgerHas(/^start/, 8)
    if (how === 'cut') proxy.cut()
    else proxy.crash({ unseen: false })
    await sleep(CUT_MS)
    if (how === 'cut') proxy.mend()
    else await proxy.restart()
    expectAllOnce(await responses, 12)
    const starts = readFileSync(file, 'utf8').match(/^start/gm)!
    expect(starts.length).toBe(12)
  } finally {
    proxy.close()
  }
})

test('a task does not run on two nodes at once if only the driver sees that a connection broke', SLOW, async () => {
  // A short lease, so that the test is short.
  const behind = await startNode({ args: ['--workers', '1', '--lease', '4s'] })
  started.push(behind)
  const proxy = await startProxy(behind.port)
  const port = await freePort()
  try {
    writeFileSync(file, '')
    const addresses = [`127.0.0.1:${proxy.port}`, `127.0.0.1:${port}`]
    const response = Runners.runTask(alone.task(file), { engineName: 'nodes', nodes: { addresses }, maxAttempts: 1 })
    await ledgerHas(/^start/)
    started.push(await startNode({ port, args: ['--workers', '1'] }))
    proxy.crash({ unseen: true })
    expect((await response).answer).toEqual({ starts: 2, running: [] })
    expect(behind.output()).toContain('has left')
  } finally {
    proxy.close()
  }
})

test('connections that break again and again cost no work', SLOW, async () => {
  const [daemon] = await nodes(1)
  const proxy = await startProxy(daemon!.port, { resetAfterMs: 300 })
  try {
    const { responses } = await run([`127.0.0.1:${proxy.port}`], 300, 100)
    expectAllOnce(await responses, 300)
    expect(readFileSync(file, 'utf8').match(/^start/gm)!.length).toBe(300)
    expect(proxy.connections).toBeGreaterThan(3)
  } finally {
    proxy.close()
  }
})

test('a node that accepts and never answers holds up nobody', SLOW, async () => {
  const silent = createServer((socket) => socket.on('error', () => {}))
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
  const { port } = silent.address() as { port: number }
  try {
    const [daemon] = await nodes(1)
    const { responses } = await run([`127.0.0.1:${port}`, daemon!.address], 20, 50)
    expectAllOnce(await responses, 20)
    const alone = Runners.runTask(tasks(1, 10), {
      engineName: 'nodes',
      // Longer than the 5 s after which the call fails.
      nodes: { addresses: [`127.0.0.1:${port}`], waitMs: 12_000 },
    })
    await expect(alone).rejects.toMatchObject({
      code: 'NODES_UNREACHABLE',
      message: expect.stringContaining('it did not answer within 5 s'),
    })
  } finally {
    silent.close()
  }
})

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return !readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z')
  } catch {
    return false
  }
}
