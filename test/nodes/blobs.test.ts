import { hash, randomBytes } from 'node:crypto'
import { globSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { type RunConfig, Runners } from '../../dist/index.js'
import { reader } from '../agents/blobs.ts'
import { itMounts, ownDisk } from '../store/own-disk.ts'
import { freePort } from '../support/free-port.ts'
import { type Daemon, startNode } from './daemon.ts'
import { startProxy } from './proxy.ts'

/** Blobs on nodes: once on each, and for as long as they are used. */

const MB = 1_000_000
/** Longer than a blob stays that nobody uses, and than anything takes here on a slow machine. */
const WITHIN_MS = 60_000
const SLOW_MS = 240_000

let root: string
const started: Daemon[] = []
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'mw-node-blobs-'))
})
afterEach(async () => {
  await Runners.shutdown()
  for (const daemon of started.splice(0)) await daemon.kill('SIGKILL')
  rmSync(root, { recursive: true, force: true })
})

/** A node whose temporary files are in a folder of its own. */
async function node(name: string, temporary = join(root, name), port = 0): Promise<Daemon> {
  mkdirSync(temporary, { recursive: true })
  const daemon = await startNode({ env: { ...process.env, TMPDIR: temporary }, args: ['--workers', '2'], port })
  started.push(daemon)
  return daemon
}

/** The blobs that a node has as files, whole or not. */
const filesOf = (name: string) =>
  globSync('*/blobs-*/*', { cwd: join(root, name) }).map((path) => path.split('/').at(-1))

const config = (addresses: readonly string[], more: RunConfig): RunConfig => ({
  ...{ engineName: 'nodes', nodes: { addresses }, store: false, concurrency: 2 },
  ...more,
})

interface Answer {
  readonly sha256: string
  /** The node. */
  readonly ppid: number
}

/** Tasks that read the blob until one was answered by this node. Resolves with all answers. */
async function readUntilAnswered(by: () => number | undefined, config: RunConfig): Promise<Answer[]> {
  const answers: Answer[] = []
  const until = Date.now() + WITHIN_MS
  function* tasks() {
    while (!answers.some(({ ppid }) => ppid === by()) && Date.now() < until)
      yield reader.task({ name: 'weights', ms: 300 })
  }
  for await (const { answer } of Runners.streamTask(tasks(), config)) answers.push(answer!)
  return answers
}

test(
  'a node has a blob as a file while it is used; afterwards it is removed',
  async () => {
    const { address } = await node('one')
    const weights = randomBytes(5 * MB)
    const sha256 = hash('sha256', weights)
    const tasks = Array.from({ length: 4 }, () => reader.task({ name: 'weights', ms: 300 }))
    const run = Runners.runTask(tasks, config([address], { blobs: { weights } }))
    await vi.waitFor(() => expect(filesOf('one')).toEqual([sha256]), WITHIN_MS)
    for (const { answer } of (await run).values()) expect(answer!.sha256).toBe(sha256)
    await vi.waitFor(() => expect(filesOf('one')).toEqual([]), WITHIN_MS)
  },
  SLOW_MS,
)

test(
  'a node that joins in the middle of a run has the blob before it gets tasks',
  async () => {
    const first = await node('first')
    const later = await node('later')
    const weights = randomBytes(5 * MB)
    // It is not there yet: what calls it comes to nothing.
    const proxy = await startProxy(later.port)
    proxy.cut()
    const addresses = [first.address, `127.0.0.1:${proxy.port}`]
    const run = readUntilAnswered(() => later.pid, config(addresses, { blobs: { weights } }))
    await vi.waitFor(() => expect(filesOf('first')).toEqual([hash('sha256', weights)]), WITHIN_MS)
    expect(filesOf('later')).toEqual([])
    proxy.mend()
    const answers = await run
    proxy.close()
    expect(answers.filter(({ ppid }) => ppid === later.pid).length).toBeGreaterThan(0)
    expect(new Set(answers.map(({ sha256 }) => sha256))).toEqual(new Set([hash('sha256', weights)]))
    expect(filesOf('later')).toEqual([hash('sha256', weights)])
  },
  SLOW_MS,
)

test(
  'connections that break again and again while a blob is sent cost nothing but time',
  async () => {
    const daemon = await node('one')
    const proxy = await startProxy(daemon.port, { resetAfterBytes: 8 * MB })
    const weights = randomBytes(50 * MB)
    const run = Runners.runTask(reader.task({ name: 'weights' }), {
      ...config([`127.0.0.1:${proxy.port}`], { blobs: { weights } }),
    })
    expect((await run).answer!.sha256).toBe(hash('sha256', weights))
    expect(proxy.connections).toBeGreaterThan(2)
    expect(filesOf('one')).toEqual([hash('sha256', weights)])
    proxy.close()
  },
  SLOW_MS,
)

itMounts(
  'a node whose disk is full says so, and its workers get the blob over their links',
  async () => {
    const { path } = ownDisk('size=8m')
    const daemon = await node('full', path)
    const said = vi.spyOn(process.stderr, 'write').mockReturnValue(true)
    const weights = randomBytes(20 * MB)
    const tasks = Array.from({ length: 4 }, () => reader.task({ name: 'weights' }))
    const responses = await Runners.runTask(tasks, config([daemon.address], { blobs: { weights } }))
    for (const { answer } of responses.values()) expect(answer!.sha256).toBe(hash('sha256', weights))
    const lines = said.mock.calls.map(([text]) => String(text)).join('')
    said.mockRestore()
    expect(lines).toMatch(/it refused blob \w{12} \(20\.0 MB\): ENOSPC: no space left on device/)
    await Runners.shutdown()
    await daemon.kill('SIGKILL')
  },
  60_000,
)

test(
  'a node that is killed and comes back gets the blob again',
  async () => {
    const port = await freePort()
    const first = await node('first', join(root, 'first'), port)
    const other = await node('other')
    const weights = randomBytes(5 * MB)
    let again: Daemon | undefined
    const run = readUntilAnswered(() => again?.pid, config([first.address, other.address], { blobs: { weights } }))
    await vi.waitFor(() => expect(filesOf('first')).toHaveLength(1), WITHIN_MS)
    await first.kill('SIGKILL')
    again = await node('first', join(root, 'first'), port)
    const answers = await run
    expect(answers.some(({ ppid }) => ppid === again!.pid)).toBe(true)
    expect(new Set(answers.map(({ sha256 }) => sha256))).toEqual(new Set([hash('sha256', weights)]))
    // What the first has left was removed by the second, which has a file of its own.
    expect(filesOf('first')).toHaveLength(1)
  },
  SLOW_MS,
)
