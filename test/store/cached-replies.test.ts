import { spawn } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { copyFileSync, existsSync, unlinkSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { zstdCompressSync } from 'node:zlib'
import { Runners } from 'manyworlds'
import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import { type CachedReply, ReplyCache } from '../../src/models/driver/cache.ts'
import { manyworlds } from '../cli/manyworlds.ts'
import { refused } from '../support/refused.ts'
import { killedTasks } from './fixtures/first-edition.ts'
import { FINISHED, openCache } from './open-cache.ts'
import { changed, query, storeFolder } from './store-folder.ts'

afterAll(() => Runners.shutdown())

const keyOf = (text: string | number) => createHash('sha256').update(String(text)).digest()
const replyOf = (body: string): CachedReply => ({ status: 200, headers: { 'content-type': 'text/plain' }, body })
const HOUR_MS = 60 * 60 * 1000
const DAY_MS = 24 * HOUR_MS

/** Stores answers as a run does. */
async function filled(path: string, runId: string, ...questions: string[]): Promise<void> {
  const run = await openCache(path, runId)
  await Promise.all(questions.map((question) => run.cache.write(keyOf(question), 'small', replyOf(`to ${question}`))))
  await run.close(FINISHED)
}

/** What a new run finds. */
async function found(path: string, ...questions: string[]): Promise<(string | undefined)[]> {
  const run = await openCache(path, `reader-${randomBytes(4).toString('hex')}`)
  const replies = await Promise.all(questions.map((question) => run.cache.read(keyOf(question))))
  await run.close(FINISHED)
  return replies.map((reply) => reply?.body)
}

describe('cached answers', () => {
  it.each([
    ['short', 'a'],
    ['of another script', 'é🎉\u2028'],
    ['with a NUL', 'a\0b'],
    ['of just the size for a row', 'x'.repeat(4096)],
    ['of one character more', 'ü'.repeat(4097)],
    ['large', JSON.stringify({ text: 'word '.repeat(500_000) })],
    ['that cannot be compressed', randomBytes(300_000).toString('base64')],
  ])('%s: are the same in a later run, to the character', async (_what, body) => {
    const { file } = storeFolder()
    const reply = { status: 203, headers: { 'x-a': 'ä', 'x-b': '' }, body }
    const run = await openCache(file(''), 'writer')
    expect(await run.cache.read(keyOf('q'))).toBe(undefined)
    await run.cache.write(keyOf('q'), 'small', reply)
    expect(await run.cache.read(keyOf('q'))).toEqual(reply)
    await run.close(FINISHED)
    const later = await openCache(file(''), 'later')
    expect(await later.cache.read(keyOf('q'))).toEqual(reply)
    await later.close(FINISHED)
    const [row] = query(file(''), 'SELECT model, status, size, body FROM cache')
    const shown = body.length > 4096 ? null : body
    expect(row).toEqual({ model: 'small', status: 203, size: Buffer.byteLength(body), body: shown })
  })

  it('are safe when `write` resolves, and the first one stays', async () => {
    const { file } = storeFolder()
    const run = await openCache(file(''), 'a')
    await run.cache.write(keyOf('q'), 'small', replyOf('first'))
    expect(query(file(''), 'SELECT body FROM cache')).toEqual([{ body: 'first' }])
    await run.cache.write(keyOf('q'), 'small', replyOf('second'))
    expect((await run.cache.read(keyOf('q')))!.body).toBe('first')
    await run.close(FINISHED)
  })

  it('are compressed, and read many at a time', async () => {
    const { file } = storeFolder()
    const run = await openCache(file(''), 'a')
    const numbers = Array.from({ length: 500 }, (_, number) => number)
    const body = (number: number) => `${number} ${'same words '.repeat(2000)}`
    await Promise.all(numbers.map((number) => run.cache.write(keyOf(number), 'small', replyOf(body(number)))))
    const replies = await Promise.all([...numbers, 'no'].map((number) => run.cache.read(keyOf(number))))
    expect(replies.map((reply) => reply?.body)).toEqual([...numbers.map(body), undefined])
    await run.close(FINISHED)
    const [size] = query(file(''), 'SELECT sum(octet_length(body)) AS stored, sum(size) AS size FROM _cache')
    expect(Number(size!.stored)).toBeLessThan(Number(size!.size) / 50)
  })

  it('are refused after the run has ended, and when the store is gone', async () => {
    const { file } = storeFolder()
    const run = await openCache(file(''), 'a')
    await run.close(FINISHED)
    await refused(() => run.cache.read(keyOf('q')), 'STORE_FAILED', 'has ended')
    await refused(() => run.cache.write(keyOf('q'), 'small', replyOf('a')), 'STORE_FAILED', 'has ended')
    let failure: Error | undefined
    const other = await openCache(file(''), 'b', { failed: (error) => (failure = error) })
    unlinkSync(file(''))
    await refused(() => other.cache.write(keyOf('q'), 'small', replyOf('a')), 'STORE_FAILED', 'was removed')
    await refused(() => other.cache.write(keyOf('r'), 'small', replyOf('a')), 'STORE_FAILED', 'was removed')
    expect(failure?.message).toContain('was removed')
    await expect(other.close(FINISHED)).rejects.toThrow('was removed')
  })

  it.each([
    ['a body that is no zstd', `UPDATE _cache SET body = x'00'`],
    ['a size that is wrong', `UPDATE _cache SET size = 7`],
    ['a size that is too large', `UPDATE _cache SET size = 1e15`],
    ['headers that are no object', `UPDATE _cache SET headers = '[]'`],
    ['headers that are no texts', `UPDATE _cache SET headers = '{"a":1}'`],
    ['a status that is no number', `UPDATE _cache SET status = 'x'`],
    ['a body of a number', 'UPDATE _cache SET body = 7'],
  ])('that no run has written are STORE_CORRUPT: %s', async (_what, sql) => {
    const { file } = storeFolder()
    const run = await openCache(file(''), 'a')
    await run.cache.write(keyOf('q'), 'small', replyOf('long '.repeat(2000)))
    await run.close(FINISHED)
    changed(file(''), sql)
    const other = await openCache(file(''), 'b')
    await refused(() => other.cache.read(keyOf('q')), 'STORE_CORRUPT')
    await other.close(FINISHED)
  })

  it('that expand to gigabytes are refused', async () => {
    const { file } = storeFolder()
    await filled(file(''), 'a', 'q')
    changed(file(''), 'UPDATE _cache SET body = ?, size = 10', zstdCompressSync(Buffer.alloc(100_000_000)))
    const run = await openCache(file(''), 'b')
    await refused(() => run.cache.read(keyOf('q')), 'STORE_CORRUPT')
    await run.close(FINISHED)
  })

  it('are in a store of version 5 after the first write, and none are before', async () => {
    const { file } = storeFolder()
    copyFileSync(join(import.meta.dirname, 'fixtures/fifth/store.sqlite'), file(''))
    // A run without a name writes nothing before its first rows.
    const run = await openCache(file(''), 'new', { named: false })
    expect(await run.cache.read(keyOf('q'))).toBe(undefined)
    expect(query(file(''), 'PRAGMA user_version')).toEqual([{ user_version: 5 }])
    await run.cache.write(keyOf('q'), 'small', replyOf('to q'))
    expect((await run.cache.read(keyOf('q')))!.body).toBe('to q')
    await run.close(FINISHED)
    expect(await found(file(''), 'q', 'r')).toEqual(['to q', undefined])
  })

  it('are kept in a file of one run as well', async () => {
    const { own } = storeFolder()
    await filled(own('mine'), 'mine', 'q')
    const run = await openCache(own('mine'), 'mine')
    expect((await run.cache.read(keyOf('q')))!.body).toBe('to q')
    await run.close(FINISHED)
  })
})

describe('cached answers stay', () => {
  it('when the run that made them is removed, and go with `rm --cache`', async () => {
    const { store, file } = storeFolder()
    const options = { cwd: store, env: { MANYWORLDS_STORE: store } }
    const says = (...words: string[]) => manyworlds(['rm', ...words], options)
    expect(await says('--cache', '--yes')).toMatchObject({ code: 0, stderr: 'nothing to remove\n' })
    expect(existsSync(file(''))).toBe(false)
    await filled(file(''), 'made-them', 'q', 'r')
    expect(await says('made-them', '--yes')).toMatchObject({ code: 0 })
    expect(query(file(''), 'SELECT run_id FROM run')).toEqual([])
    expect(await found(file(''), 'q', 'r')).toEqual(['to q', 'to r'])
    expect(await says('--cache', '--older-than', '1h', '--yes')).toMatchObject({ stderr: 'nothing to remove\n' })
    expect(await says('--cache', 'made-them')).toMatchObject({ code: 2 })
    expect(await says('--cache')).toMatchObject({ code: 2, stderr: expect.stringContaining('--yes') })
    expect(await says('--cache', '--dry-run')).toMatchObject({ code: 0, stdout: '2 cached answers (8 B)\n' })
    changed(file(''), 'UPDATE _cache SET used_at = used_at - ? WHERE key = ?', 2 * HOUR_MS, keyOf('r'))
    const older = await says('--cache', '--older-than', '1h', '--yes')
    expect(older).toMatchObject({ code: 0, stderr: 'removed 1 cached answer (4 B)\n' })
    expect(await found(file(''), 'q', 'r')).toEqual(['to q', undefined])
    expect(await says('--cache', '--yes')).toMatchObject({ code: 0, stderr: 'removed 1 cached answer (4 B)\n' })
    expect(await found(file(''), 'q', 'r')).toEqual([undefined, undefined])
  })

  it('`rm --cache` removes many, gives their space back, and no run', async () => {
    const { store, file } = storeFolder()
    const run = await openCache(file(''), 'a')
    const text = randomBytes(8000).toString('base64')
    await Promise.all(
      Array.from({ length: 3000 }, (_, n) => run.cache.write(keyOf(n), 'small', replyOf(`${n} ${text}`))),
    )
    await run.close(FINISHED)
    const pages = () => Number(query(file(''), 'PRAGMA page_count')[0]!.page_count)
    const before = pages()
    const ended = await manyworlds(['rm', '--cache', '--yes', '--dir', store], { cwd: store })
    expect(ended).toMatchObject({ code: 0 })
    expect(pages()).toBeLessThan(before / 20)
    expect(query(file(''), 'SELECT count(*) AS n FROM _cache')).toEqual([{ n: 0 }])
    expect(query(file(''), 'SELECT run_id FROM run')).toEqual([{ run_id: 'a' }])
    expect(query(file(''), 'PRAGMA integrity_check')).toEqual([{ integrity_check: 'ok' }])
  })

  it('as long as runs use them: `keep: { days }` removes the others', async () => {
    const { file } = storeFolder()
    await filled(file(''), 'a', 'used', 'unused', 'new')
    const age = (days: number, ...questions: string[]) => {
      for (const question of questions)
        changed(file(''), 'UPDATE _cache SET used_at = ? WHERE key = ?', Date.now() - days * DAY_MS, keyOf(question))
    }
    age(9, 'used', 'unused')
    expect(await found(file(''), 'used')).toEqual(['to used'])
    await Runners.runTask(killedTasks[0]!, { store: resolve(file(''), '..'), keep: { days: 10 } })
    expect(query(file(''), 'SELECT count(*) AS n FROM _cache')).toEqual([{ n: 3 }])
    const keeping = await openCache(file(''), 'b', { keep: { days: 8 } })
    await keeping.close(FINISHED)
    expect(await found(file(''), 'used', 'unused', 'new')).toEqual(['to used', undefined, 'to new'])
  })

  it('and `keep: { runs }` does not touch them', async () => {
    const { store, file } = storeFolder()
    await filled(file(''), 'a', 'q')
    await Runners.runTask(killedTasks[0]!, { store, keep: { runs: 1 } })
    expect(query(file(''), 'SELECT count(*) AS n FROM run')).toEqual([{ n: 1 }])
    expect(await found(file(''), 'q')).toEqual(['to q'])
  })

  it('in their store when a run is exported', async () => {
    const { store, file } = storeFolder()
    await filled(file(''), 'a', 'q')
    const copy = join(store, 'copy.sqlite')
    expect(await manyworlds(['export-run', 'a', copy, '--dir', store], { cwd: store })).toMatchObject({ code: 0 })
    expect(query(copy, 'SELECT count(*) AS n FROM _cache')).toEqual([{ n: 0 }])
  })
})

/** A process that stores answers; `safe` has the numbers of those that it was told are safe. */
function writer(path: string, runId: string, count: number, name: string) {
  const script = resolve(import.meta.dirname, '../scripts/cache-writer.ts')
  const child = spawn(process.execPath, [script, path, runId, String(count), name], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  let [out, errors] = ['', '']
  child.stdout.setEncoding('utf8').on('data', (text: string) => (out += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text))
  const closed = new Promise<number | null>((done) => child.once('close', done))
  // The last line may be cut.
  const safe = () => out.split('\n').slice(0, -1).map(Number)
  return { child, closed, safe, errors: () => errors }
}

const bodyOf = (number: number, name: string) =>
  JSON.stringify({ id: `chatcmpl-${number}`, name, text: `${number} `.repeat((number * 997) % 20_000) })

it('kill -9 in the middle of writes loses no answer that was safe, and breaks none', { timeout: 120_000 }, async () => {
  const { file } = storeFolder()
  const safe = new Set<number>()
  for (let round = 0; round < 5; round++) {
    const driver = writer(file(''), `killed-${round}`, 1_000_000, 'one')
    while (driver.safe().length < 60 * (round + 1)) {
      expect(driver.child.exitCode, driver.errors()).toBe(null)
      await new Promise((later) => setTimeout(later, 5))
    }
    driver.child.kill('SIGKILL')
    await driver.closed
    for (const number of driver.safe()) safe.add(number)
    expect(query(file(''), 'PRAGMA integrity_check')).toEqual([{ integrity_check: 'ok' }])
    const bodies = await found(file(''), ...[...safe].map(String))
    expect(bodies).toEqual([...safe].map((number) => bodyOf(number, 'one')))
  }
  expect(safe.size).toBeGreaterThan(250)
})

it('two drivers that store the same answers at once: no error, and one of them counts', {
  timeout: 120_000,
}, async () => {
  const { file } = storeFolder()
  const COUNT = 400
  const drivers = ['one', 'two'].map((name) => writer(file(''), `run-${name}`, COUNT, name))
  for (const driver of drivers) expect(await driver.closed, driver.errors()).toBe(0)
  for (const driver of drivers) expect(driver.safe()).toHaveLength(COUNT)
  const bodies = await found(file(''), ...Array.from({ length: COUNT }, (_, number) => String(number)))
  for (const [number, body] of bodies.entries()) expect([bodyOf(number, 'one'), bodyOf(number, 'two')]).toContain(body)
  expect(query(file(''), 'SELECT count(*) AS n FROM _cache')).toEqual([{ n: COUNT }])
  expect(query(file(''), 'PRAGMA integrity_check')).toEqual([{ integrity_check: 'ok' }])
})

it('a run and its replay get the same answers, through the real store', async () => {
  const { file } = storeFolder()
  const asker = { signal: new AbortController().signal, waiting: () => {} }
  const identity = (number: number) => ({
    ...{ server: 'http://localhost/v1', model: 'small', path: '/chat/completions', seed: 7, rollout: 1, occurrence: 0 },
    body: JSON.stringify({ messages: [{ role: 'user', content: `question ${number % 50}` }] }),
  })
  let calls = 0
  const make = async () => replyOf(JSON.stringify({ id: `chatcmpl-${++calls}`, n: calls }))
  const answers = async (runId: string, mode: true | 'replay') => {
    const run = await openCache(file(''), runId)
    const cache = new ReplyCache(run.cache, mode)
    const got = await Promise.all(Array.from({ length: 200 }, (_, n) => cache.get(identity(n), make, asker)))
    await run.close(FINISHED)
    return got.map(({ reply }) => (JSON.parse(reply.body) as { n: number }).n)
  }
  const first = await answers('first', true)
  expect(calls).toBe(50)
  expect(await answers('second', 'replay')).toEqual(first)
  expect(calls).toBe(50)
})

describe('the configuration', () => {
  it('refuses a cache without a store', async () => {
    const task = killedTasks[0]!
    await refused(() => Runners.runTask(task, { store: false, cache: true }), 'CONFIG_INVALID', '`cache`', '`store`')
    await refused(() => Runners.runTask(task, { store: false, cache: 'replay' }), 'CONFIG_INVALID', '`cache`')
    const wrong = { cache: 'yes' as 'replay' }
    await refused(() => Runners.runTask(task, wrong), 'CONFIG_INVALID', "`cache` must be true, false or 'replay'")
  })

  it('comes from the command line as well, and is recorded', async () => {
    const { store, file } = storeFolder()
    const script = resolve(import.meta.dirname, '../../examples/hello.ts')
    const run = (...words: string[]) => manyworlds(['run', script, '-q', '--store', store, ...words], { cwd: store })
    for (const words of [['--cache'], ['--replay'], []]) expect(await run(...words)).toMatchObject({ code: 0 })
    const caches = query(file(''), `SELECT config -> '$.cache' AS cache FROM sessions ORDER BY started_at`)
    expect(caches).toEqual([{ cache: 'true' }, { cache: '"replay"' }, { cache: 'false' }])
    expect(await run('--cache', '--replay')).toMatchObject({ code: 2, stderr: expect.stringContaining('--replay') })
    const off = { cwd: store, env: { MANYWORLDS_STORE: 'off' } }
    const without = await manyworlds(['run', script, '--cache'], off)
    expect(without).toMatchObject({ code: 2, stderr: expect.stringContaining('`cache` keeps answers in the store') })
  })
})
