import { spawn } from 'node:child_process'
import { hash, randomBytes } from 'node:crypto'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { BlobService } from '../../dist/executor/blob-service.js'
import { Blobs } from '../../dist/executor/blobs.js'
import { type BlobContent, DistributedExecutor, LocalRuntime, Runners, SharedBlob } from '../../dist/index.js'
import { beginner, failing, holder, leaver, reader, setUpReader, weigher } from '../agents/blobs.ts'
import { itMounts, ownDisk } from '../store/own-disk.ts'
import { runScript } from '../support/run-script.ts'

/** A blob that nobody uses stays for five seconds; a busy machine may be late. */
const DROPPED_MS = 45_000
const SLOW_TEST_MS = 120_000
const MB = 1_000_000

let temporary: string
const usual = process.env.TMPDIR
beforeEach(() => {
  temporary = mkdtempSync(join(tmpdir(), 'mw-blobs-'))
  process.env.TMPDIR = temporary
})
afterEach(async () => {
  await Runners.shutdown()
  if (usual === undefined) delete process.env.TMPDIR
  else process.env.TMPDIR = usual
  rmSync(temporary, { recursive: true, force: true })
})

const folders = () => readdirSync(temporary).filter((name) => name.startsWith('manyworlds-blobs-'))
const files = () =>
  folders().flatMap((name) => readdirSync(join(temporary, name)).filter((file) => !/alive/.test(file)))

/** Counts what it is asked for; delivers nothing before its gate is open. */
class Watched extends LocalRuntime {
  static readonly calls: string[] = []
  static gate: Promise<unknown> = Promise.resolve()

  override async putBlob(blob: BlobContent): Promise<void> {
    Watched.calls.push('put')
    await Watched.gate
    await super.putBlob(blob)
  }

  override async dropBlob(sha256: string): Promise<void> {
    Watched.calls.push('drop')
    await super.dropBlob(sha256)
  }
}

/** From now on no blob is delivered, until the function that it returns is called. */
function closeGate(): () => void {
  const { promise, resolve } = Promise.withResolvers<void>()
  Watched.gate = promise
  onTestFinished(() => resolve())
  return () => resolve()
}

/** Has no way to bring blobs to its workers. */
const withoutBlobs = () => Object.assign(new LocalRuntime(), { putBlob: undefined, dropBlob: undefined })

test('a mistake in `blobs` is one error before anything is started', async () => {
  const run = (blobs: unknown) => Runners.runTask(reader.task({ name: 'x' }), { blobs } as never)
  await expect(run({ weights: 'text' })).rejects.toMatchObject({
    code: 'CONFIG_INVALID',
    message: expect.stringMatching(/`blobs\.weights` must be a Uint8Array .* it is 'text'/),
  })
  await expect(run({ ['ab'.repeat(32)]: new Uint8Array(1) })).rejects.toMatchObject({ code: 'CONFIG_INVALID' })
  expect(() => new SharedBlob('text' as never)).toThrow(/Uint8Array/)
})

test('a name that the run does not have is an error that names those that it has', async () => {
  const blobs = { weights: randomBytes(10) }
  const { answer } = await Runners.runTask(failing.task('wieghts'), { store: false, blobs })
  expect(answer).toMatchObject({
    code: 'BLOB_UNKNOWN',
    message: expect.stringMatching(/did you mean "weights"\?; the run has weights/),
  })
})

test('a file that is not what its hash says is an error that names it', async () => {
  class Spoils extends LocalRuntime {
    override async putBlob(blob: BlobContent): Promise<void> {
      await super.putBlob(blob)
      writeFileSync(join(temporary, folders()[0]!, blob.sha256), randomBytes(blob.bytes.byteLength))
    }
  }
  const blobs = { weights: randomBytes(3 * MB) }
  const { answer } = await Runners.runTask(failing.task('weights'), { cls: Spoils, store: false, blobs })
  const file = join(temporary, folders()[0]!, hash('sha256', blobs.weights))
  expect(answer).toMatchObject({ code: 'BLOB_DAMAGED', message: expect.stringContaining(file) })
})

test(
  'runs that use the same bytes have them brought once; when the last is over, they are removed',
  async () => {
    Watched.calls.length = 0
    const bytes = randomBytes(MB)
    const run = (ms: number) =>
      Runners.runTask(reader.task({ name: 'weights', ms }), { cls: Watched, store: false, blobs: { weights: bytes } })
    await Promise.all([run(50), run(300)])
    await run(0)
    expect(Watched.calls).toEqual(['put'])
    expect(files()).toEqual([hash('sha256', bytes)])
    await vi.waitFor(() => expect(files()).toEqual([]), DROPPED_MS)
    expect(Watched.calls).toEqual(['put', 'drop'])
    const again = await run(0)
    expect(again.answer!.sha256).toBe(hash('sha256', bytes))
    expect(Watched.calls).toEqual(['put', 'drop', 'put'])
  },
  SLOW_TEST_MS,
)

test(
  'versions that were replaced are removed, but for those that a task still has',
  async () => {
    const versions = [randomBytes(MB), randomBytes(MB), randomBytes(MB)]
    const names = versions.map((bytes) => hash('sha256', bytes))
    const weights = new SharedBlob(versions[0]!)
    const reads = Promise.withResolvers<void>()
    const goesOn = Promise.withResolvers<void>()
    const hold = () => {
      reads.resolve()
      return goesOn.promise
    }
    const first = Runners.runTask(holder.task('weights'), { store: false, blobs: { weights }, services: { hold } })
    await reads.promise
    weights.replace(versions[1]!)
    weights.replace(versions[2]!)
    await vi.waitFor(() => expect(files()).toHaveLength(3), DROPPED_MS)
    await vi.waitFor(() => expect(files().toSorted()).toEqual([names[0]!, names[2]!].toSorted()), DROPPED_MS)
    goesOn.resolve()
    expect((await first).answer).toBe(names[0])
    await vi.waitFor(() => expect(files()).toEqual([]), DROPPED_MS)
  },
  SLOW_TEST_MS,
)

test('bytes that another run uses before they are removed stay until that run is over', async () => {
  const calls: string[] = []
  const putBlob = async () => void calls.push('put')
  const dropBlob = async () => void calls.push('drop')
  const blobs = new Blobs(Object.assign(new LocalRuntime(), { putBlob, dropBlob }), () => {})
  const bytes = randomBytes(10)
  const content = { sha256: hash('sha256', bytes), bytes }
  vi.useFakeTimers()
  try {
    blobs.hold(content).release()
    await vi.advanceTimersByTimeAsync(1000)
    const next = blobs.hold(content)
    await vi.advanceTimersByTimeAsync(DROPPED_MS)
    expect(blobs.find(content.sha256)).toEqual(content)
    expect(calls).toEqual(['put'])
    next.release()
    await vi.advanceTimersByTimeAsync(DROPPED_MS)
    expect(calls).toEqual(['put', 'drop'])
  } finally {
    vi.useRealTimers()
  }
})

test('the time that a task waits for a blob is not its own', async () => {
  const config = { cls: Watched, workerNum: 1, store: false } as const
  // The worker is there.
  await Runners.runTask(weigher.task(undefined), config)
  const openGate = closeGate()
  const timeoutMs = 2500
  // Delivered only when the task has begun and has waited for longer than it may take.
  const begin = () => void setTimeout(openGate, timeoutMs + 1000)
  const { success, timing } = await Runners.runTask(beginner.task('weights'), {
    ...{ ...config, timeoutMs, blobs: { weights: randomBytes(MB) }, services: { begin } },
  })
  expect(success).toBe(true)
  expect(timing.waitedMs).toBeGreaterThan(timeoutMs)
})

test(
  'when the task on whose behalf a blob is loaded ends, the others still get it',
  async () => {
    const weights = randomBytes(60 * MB)
    const config = { cls: withoutBlobs, workerNum: 1, concurrency: 8, store: false, blobs: { weights } } as const
    const tasks = [5, 20, 40].map((ms) => leaver.task({ name: 'weights', ms }, { id: `leaver-${ms}` }))
    const responses = await Runners.runTask([...tasks, reader.task({ name: 'weights' }, { id: 'reader' })], config)
    for (const { id, success } of responses.values()) expect(success, id).toBe(true)
    expect(responses.get('reader')!.answer).toMatchObject({ sha256: hash('sha256', weights) })
  },
  SLOW_TEST_MS,
)

test(
  'a task that is cancelled while it waits for a blob gives up at once; another that waits for the same gets it',
  async () => {
    // The worker has had several tasks at once, and may have them again.
    const some = Array.from({ length: 8 }, () => reader.task({ name: 'other', ms: 50 }))
    await Runners.runTask(some, { cls: Watched, workerNum: 1, store: false, blobs: { other: randomBytes(10) } })
    const openGate = closeGate()
    const weights = randomBytes(MB)
    const abort = new AbortController()
    let began = 0
    const services = { begin: () => void began++ }
    const config = { cls: Watched, workerNum: 1, store: false, blobs: { weights }, services } as const
    const cancelled = Runners.runTask(beginner.task('weights'), { ...config, signal: abort.signal })
    await vi.waitFor(() => expect(began).toBe(1), 30_000)
    const other = Runners.runTask(beginner.task('weights'), config)
    await vi.waitFor(() => expect(began).toBe(2), 30_000)
    await sleep(100)
    abort.abort()
    // While the blob is still not there.
    expect((await cancelled).status).toBe('cancelled')
    openGate()
    expect((await other).answer).toBe(hash('sha256', weights))
  },
  SLOW_TEST_MS,
)

test('a setup reads a blob; if the task that it was begun for is cancelled meanwhile, it goes on for the next', async () => {
  const openGate = closeGate()
  const weights = randomBytes(MB)
  const abort = new AbortController()
  const agent = setUpReader.withParams({ blob: hash('sha256', weights) })
  const config = { cls: Watched, workerNum: 1, store: false, blobs: { weights } } as const
  const cancelled = Runners.runTask(agent.task(null), { ...config, signal: abort.signal })
  await sleep(1200)
  abort.abort()
  expect((await cancelled).status).toBe('cancelled')
  openGate()
  const next = await Runners.runTask(agent.task(null), config)
  expect(next.answer).toBe(hash('sha256', weights))
}, 60_000)

test('a setup takes hashes only, and says so', async () => {
  const blobs = { weights: randomBytes(10) }
  const agent = setUpReader.withParams({ blob: 'weights' })
  const { error } = await Runners.runTask(agent.task(null), { store: false, blobs })
  expect(error).toMatchObject({ code: 'SETUP_FAILED', message: expect.stringContaining('takes the SHA-256 of a blob') })
})

test(
  'a worker keeps what its tasks use, and not much more',
  async () => {
    const names = ['a', 'b', 'c', 'd', 'e', 'f']
    const blobs = Object.fromEntries(names.map((name) => [name, randomBytes(70 * MB)]))
    const config = { workerNum: 1, concurrency: 1, store: false, blobs } as const
    await Runners.runTask(
      names.map((name) => reader.task({ name })),
      config,
    )
    const { answer } = await Runners.runTask(weigher.task(undefined), config)
    expect(answer).toBeGreaterThan(200)
    expect(answer).toBeLessThan(300)
  },
  SLOW_TEST_MS,
)

test('a run in a blocked thread has its blobs too', () => {
  const weights = new SharedBlob(randomBytes(MB))
  const responses = Runners.syncRunTask([reader.task({ name: 'weights' })], { store: false, blobs: { weights } })
  expect([...responses.values()][0]!.answer).toMatchObject({ sha256: hash('sha256', weights.bytes) })
})

test('an executor has blobs for what is submitted', async () => {
  const weights = randomBytes(MB)
  await using executor = new DistributedExecutor({ workerNum: 1, store: false, blobs: { weights } })
  const id = executor.submitTask(reader.task({ name: 'weights' }))
  const done = await executor.collectResults()
  expect(done.get(id)!.answer).toMatchObject({ sha256: hash('sha256', weights) })
})

test('the run file has the hash of a blob, and not its bytes', async () => {
  const weights = randomBytes(MB)
  const store = join(temporary, 'run.sqlite')
  await Runners.runTask(reader.task({ name: 'weights' }), { store, runId: 'r', blobs: { weights } })
  using db = new DatabaseSync(store, { readOnly: true })
  const { config } = db.prepare('SELECT config FROM sessions').get() as { config: string }
  expect(JSON.parse(config)).toMatchObject({ blobs: { weights: hash('sha256', weights) } })
})

itMounts('where the disk is full, the user is told, and tasks get the blob over the link', async () => {
  delete process.env.TMPDIR
  process.env.TMPDIR = ownDisk('size=4m').path
  const said = vi.spyOn(process.stderr, 'write').mockReturnValue(true)
  const weights = randomBytes(20 * MB)
  const { answer } = await Runners.runTask(reader.task({ name: 'weights' }), { store: false, blobs: { weights } })
  expect(answer).toMatchObject({ sha256: hash('sha256', weights) })
  const lines = said.mock.calls.map(([text]) => String(text)).join('')
  said.mockRestore()
  expect(lines).toMatch(/the local engine could not deliver blob \w{12} \(20\.0 MB\): ENOSPC/)
  await Runners.shutdown()
})

test('no file is left: neither by a program that just ends, nor by one that is killed, once the next begins', async () => {
  const env = { TMPDIR: temporary }
  const ended = await runScript('blobs.ts', { env })
  expect(ended).toMatchObject({ code: 0, stdout: '1000000\n' })
  expect(folders()).toEqual([])

  const script = new URL('../scripts/blobs.ts', import.meta.url).pathname
  const killed = spawn(process.execPath, [script, 'waits'], { env: { ...process.env, ...env }, stdio: 'pipe' })
  await new Promise((resolve) => killed.stdout.once('data', resolve))
  killed.kill('SIGKILL')
  await new Promise((resolve) => killed.once('close', resolve))
  expect(folders()).toHaveLength(1)
  expect((await runScript('blobs.ts', { env })).code).toBe(0)
  expect(folders()).toEqual([])
}, 60_000)

test('a question about a blob that no worker of ours asks costs the worker that asks it', () => {
  const service = new BlobService(new Blobs(new LocalRuntime(), () => {}))
  const sha256 = 'ab'.repeat(32)
  for (const right of [
    ['open', 'x'],
    ['open', sha256],
    ['wait', sha256],
    ['read', sha256, 0],
  ])
    expect(() => service.check(right), JSON.stringify(right)).not.toThrow()
  const wrong = [
    ...[undefined, null, 'open', {}, [], ['open'], ['open', 7], ['open', 'x'.repeat(300)], ['open', 'x', 0]],
    ...[
      ['close', 'x'],
      ['wait', 'x'],
      ['wait', `${sha256}\n`],
      ['read', sha256],
      ['read', sha256, -1],
    ],
    ...[
      ['read', sha256, 0.5],
      ['read', sha256, '0'],
      ['read', '../../etc/passwd', 0],
    ],
  ]
  for (const one of wrong) expect(() => service.check(one), JSON.stringify(one)).toThrow(TypeError)
})
