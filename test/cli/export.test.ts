import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import fc from 'fast-check'
import { asyncBufferFromFile, parquetMetadataAsync, parquetReadObjects } from 'hyparquet'
import { Runners } from 'manyworlds'
import { fromCsv, fromJsonl } from 'manyworlds/data'
import { RunFile } from 'manyworlds/runs'
import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import { RESPONSE_COLUMNS, STEP_COLUMNS, TASK_COLUMNS, type Table } from '../../src/export/columns.ts'
import { csvHeader, csvLine } from '../../src/export/csv-text.ts'
import { fromLossless } from '../../src/trajectory/read-lossless.ts'
import { echo, sleeper } from '../agents/basics.ts'
import { doubler, equals } from '../agents/graded.ts'
import { ledger, odd, parent } from '../agents/ledger.ts'
import { toArray } from '../data/files.ts'
import { itMounts, ownDisk } from '../store/own-disk.ts'
import { query, storeFolder } from '../store/store-folder.ts'
import { MAIN, manyworlds } from './manyworlds.ts'

afterAll(() => Runners.shutdown())

/** Copies: SQLite leaves files beside those that it reads. */
const fixtures = mkdtempSync(join(tmpdir(), 'manyworlds-fixtures-'))
cpSync(fileURLToPath(new URL('../store/fixtures', import.meta.url)), fixtures, { recursive: true })
afterAll(() => rmSync(fixtures, { recursive: true, force: true }))
const fixture = (name: string) => join(fixtures, name)
const VALUES = ['input', 'answer', 'action', 'observation', 'record', 'reward']
/** As JSON has it: without fields that are undefined. */
const plain = (cell: string) => JSON.parse(JSON.stringify(fromLossless(JSON.parse(cell))))
const FORMULAS = ['=1+1', '+1', '-1', '@x', '\tx', '＝1', "'x"]

async function* textOf(text: string) {
  yield text
}

/** A run with what tasks can come to: texts, odd values, failures, retries, sub-tasks, ids that look like formulas. */
async function someRun() {
  const folder = storeFolder()
  const { store, ledger: path } = folder
  const tasks = [
    echo.task('a "text", with\nlines', { id: 'text', groundTruth: 1, metadata: { level: 2 }, groupId: 'g' }),
    odd.task([Number.NaN, -0, 1n], { id: 'odd' }),
    ledger.task({ ledger: path, until: 2 }, { id: 'retried', maxAttempts: 2 }),
    ledger.task({ ledger: path, until: 9 }, { id: 'failed' }),
    parent.task({ ledger: path }, { id: 'parent' }),
    sleeper.task(5000, { id: 'timeout', timeoutMs: 50 }),
    echo.task('x'.repeat(10_000), { id: 'long' }),
    echo.task(undefined, { id: 'nothing' }),
    ...FORMULAS.map((id) => echo.task(id, { id })),
  ]
  await Runners.runTask(tasks as never, { workerNum: 1, backoffMs: 1, store, runId: 'r' })
  const out = (name: string) => join(store, name)
  const run = (...words: string[]) => manyworlds(['export', 'r', '--dir', store, ...words])
  return { store, out, run, file: folder.file('r'), size: tasks.length }
}

describe('manyworlds export', () => {
  it('writes JSONL from which every response can be had again, as RunFile gives it', async () => {
    const { run, store, size } = await someRun()
    const { code, stdout, stderr } = await run('--format', 'jsonl')
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    const lines = stdout
      .trimEnd()
      .split('\n')
      .map((line) => fromLossless(JSON.parse(line)) as Record<string, unknown>)
    expect(lines).toHaveLength(size)
    using file = RunFile.open('r', { store })
    for (const [place, response] of [...file.responses()].entries()) {
      const { error, trajectory, ...fields } = { error: undefined, ...response, trajectory: response.trajectory }
      expect(lines[place]).toMatchObject({ seq: expect.any(Number), endedAt: expect.any(Number) })
      expect(lines[place]).toMatchObject(JSON.parse(JSON.stringify({ id: fields.id, status: fields.status })))
      expect(lines[place]!.trajectory).toEqual(trajectory)
      expect(lines[place]!.answer).toEqual(response.answer)
      for (const key of ['timing', 'usage', 'logs', 'worker', 'attempts', 'agentName'] as const)
        expect(lines[place]![key]).toEqual(response[key])
      if (error)
        expect(lines[place]!.error).toMatchObject({ code: error.code, message: error.message, stack: error.stack })
    }
  })

  it('writes CSV whose columns are those of the views, with the same values', async () => {
    const { run, file } = await someRun()
    for (const what of ['responses', 'tasks', 'steps']) {
      const { stdout, code } = await run('--format', 'csv', '--what', what, '--subtasks')
      expect(code).toBe(0)
      const rows = await toArray(fromCsv(textOf(stdout)))
      const order = what === 'responses' ? 'ORDER BY seq' : ''
      const views = query(file, `SELECT * FROM ${what} WHERE run_id = 'r' ${order}`)
      expect(rows).toHaveLength(views.length)
      const byKey = (row: Record<string, unknown>) => `${String(row.id).replace(/^'/, '')} ${row.attempt} ${row.step}`
      const known = new Map(views.map((view) => [byKey(view), view]))
      for (const row of rows) {
        const view = known.get(byKey(row))!
        for (const [name, cell] of Object.entries(row)) {
          const value = view[name]
          // The views have the beginning of these, or a readable form of what JSON cannot hold.
          if ((view.is_cut === 1 || view.id === 'odd' || view.id === 'long') && VALUES.includes(name)) continue
          // The view has the error as it is stored: its cause is written in another way.
          if (name === 'error' && value !== null) {
            const { code, message, stack } = JSON.parse(value as string)
            expect(JSON.parse(cell)).toMatchObject({ code, message, stack })
          } else if (value === null) expect([name, cell]).toEqual([name, ''])
          else if (name === 'is_final') expect(cell).toBe(String(value === 1))
          else if (typeof value === 'number') expect([name, Number(cell)]).toEqual([name, value])
          else if (/^["[{]/.test(cell)) expect([name, plain(cell)]).toEqual([name, JSON.parse(value as string)])
          else expect([name, cell.replace(/^'(?=[=+\-@\t＝])/, '')]).toEqual([name, value])
        }
      }
    }
  })

  it('has a column for each of the views, but for those that say what is cut', () => {
    const viewColumns = (view: string) => {
      const page = readFileSync(fileURLToPath(new URL('../../docs/run-file.md', import.meta.url)), 'utf8')
      const section = page.split(`### \`${view}\``)[1]!.split('\n### ')[0]!
      return section.match(/(?<=^\| )`.*?(?= \|)/gm)!.flatMap((cell) => cell.match(/(?<=`)\w+(?=`)/g)!)
    }
    const names = (columns: readonly { readonly name: string }[]) => columns.map(({ name }) => name)
    const without = (view: string, ...left: string[]) => viewColumns(view).filter((name) => !left.includes(name))
    expect(names(RESPONSE_COLUMNS)).toEqual(without('responses', 'trajectory', 'is_cut'))
    expect(names(STEP_COLUMNS)).toEqual(without('steps', 'links', 'is_cut', 'start'))
    expect(names(TASK_COLUMNS)).toEqual(without('tasks'))
  })

  it('writes Parquet with proper types, which reads back', async () => {
    const { run, out, size, store } = await someRun()
    const ended = await run('--out', out('r.parquet'))
    expect(ended).toMatchObject({ code: 0, stdout: '', stderr: `${size} responses of run r: ${out('r.parquet')}\n` })
    const buffer = await asyncBufferFromFile(out('r.parquet'))
    const { schema, key_value_metadata: said } = await parquetMetadataAsync(buffer)
    const types = Object.fromEntries(
      schema.slice(1).map(({ name, type, converted_type }) => [name, converted_type ?? type]),
    )
    expect(types).toMatchObject({
      ...{
        id: 'UTF8',
        answer: 'UTF8',
        attempt: 'INT64',
        run_ms: 'DOUBLE',
        ended_at: 'TIMESTAMP_MILLIS',
        success: 'BOOLEAN',
      },
    })
    expect(said).toContainEqual({ key: 'run', value: 'r' })
    const rows = await parquetReadObjects({ file: buffer })
    using file = RunFile.open('r', { store })
    for (const [place, response] of [...file.responses()].entries()) {
      const row = rows[place]!
      expect(row).toMatchObject({
        id: response.id,
        status: response.status,
        run_ms: response.timing.runMs,
        run_id: 'r',
      })
      expect(row.ended_at).toBeInstanceOf(Date)
      expect(row.answer === null ? undefined : fromLossless(JSON.parse(row.answer))).toEqual(response.answer)
    }
    await run('--what', 'steps', '--out', out('steps.parquet'))
    const steps = await parquetReadObjects({ file: await asyncBufferFromFile(out('steps.parquet')) })
    const records = steps
      .filter(({ id, is_final }) => id === 'odd' && is_final)
      .map(({ record }) => fromLossless(JSON.parse(record)))
    expect(records).toEqual(file.task('odd')!.response!.trajectory)
    expect(
      steps.filter(({ id }) => id === 'retried').map(({ attempt, is_final }) => [Number(attempt), is_final]),
    ).toEqual([
      [1, false],
      [2, true],
    ])
  })

  it('leaves sub-tasks out, unless it is asked for them', async () => {
    const { run, size } = await someRun()
    const ids = async (...words: string[]) =>
      (await run('--format', 'jsonl', ...words)).stdout
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line).id)
    expect(await ids()).toHaveLength(size)
    expect((await ids('--subtasks')).filter((id) => id.startsWith('parent/'))).toHaveLength(2)
    expect((await ids('--what', 'tasks', '--subtasks')).filter((id) => id.startsWith('parent/'))).toHaveLength(2)
    expect((await ids('--what', 'steps')).filter((id) => id.startsWith('parent/'))).toEqual([])
  })

  it.each(['finished', 'resumed', 'killed'])('reads a run file of the first edition: %s', async (name) => {
    const responses = await manyworlds(['export', fixture(`${name}.sqlite`), '--format', 'jsonl'])
    expect(responses).toMatchObject({ code: 0, stderr: '' })
    using file = RunFile.open(fixture(`${name}.sqlite`))
    const lines = responses.stdout
      .split('\n')
      .filter(Boolean)
      .map((line) => fromLossless(JSON.parse(line)))
    const expected = [...file.responses()].map(({ id, trajectory }) => ({ id, trajectory }))
    expect(lines).toMatchObject(expected)
    const steps = await manyworlds(['export', fixture(`${name}.sqlite`), '--format', 'csv', '--what', 'steps'])
    const final = expected.reduce((sum, { trajectory }) => sum + trajectory.length, 0)
    const rows = await toArray(fromCsv(textOf(steps.stdout)))
    expect(rows.filter(({ is_final }) => is_final === 'true')).toHaveLength(final)
    const tasks = await manyworlds([
      'export',
      fixture(`${name}.sqlite`),
      '--format',
      'jsonl',
      '--what',
      'tasks',
      '--subtasks',
    ])
    expect(tasks.stdout.split('\n').filter(Boolean)).toHaveLength([...file.tasks()].length)
  })

  it('reads a store of the second edition', async () => {
    for (const runId of RunFile.list({ store: fixture('second') })) {
      const ended = await manyworlds(['export', runId, '--dir', fixture('second'), '--format', 'jsonl'])
      using file = RunFile.open(runId, { store: fixture('second') })
      const expected = [...file.responses()].map(({ id, trajectory }) => ({ id, trajectory }))
      const lines = ended.stdout.split('\n').filter(Boolean)
      expect(lines.map((line) => fromLossless(JSON.parse(line)))).toMatchObject(expected)
    }
  })

  it('has grades, groups and rollouts', async () => {
    const { store } = storeFolder()
    const tasks = [doubler.task(1, { id: 'right', groundTruth: 2 }), doubler.task(2, { id: 'wrong', groundTruth: 5 })]
    await Runners.runTask(tasks, { workerNum: 1, store, runId: 'r', rollouts: 2, grade: equals })
    const csv = async (what: string) => {
      const { stdout } = await manyworlds(['export', 'r', '--dir', store, '--format', 'csv', '--what', what])
      return toArray(fromCsv(textOf(stdout)))
    }
    const responses = (await csv('responses')).map(({ id, reward, success }) => `${id} ${reward} ${success}`)
    expect(responses.toSorted()).toEqual(['right 1 true', 'right@2 1 true', 'wrong 0 false', 'wrong@2 0 false'])
    expect((await csv('tasks')).map(({ id, group_id, rollout }) => `${id} ${group_id} ${rollout}`)).toEqual([
      ...['right right 1', 'right@2 right 2', 'wrong wrong 1', 'wrong@2 wrong 2'],
    ])
    const { stdout } = await manyworlds(['export', 'r', '--dir', store, '--format', 'jsonl'])
    for (const line of stdout.trimEnd().split('\n'))
      expect(JSON.parse(line)).toMatchObject({ grade: { grader: expect.anything() }, rollout: expect.any(Number) })
  })

  it('reads a run that is going on', async () => {
    const { store } = storeFolder()
    const stop = new AbortController()
    const tasks = [echo.task('done', { id: 'a' }), ledger.task({ ledger: join(store, 'l'), ms: 60_000 }, { id: 'b' })]
    const running = Runners.runTask(tasks as never, { workerNum: 1, store, runId: 'r', signal: stop.signal })
    using file = await expect
      .poll(() => RunFile.open('r', { store }))
      .toBeDefined()
      .then(() => RunFile.open('r', { store }))
    await expect.poll(() => [...file.responses()].length).toBe(1)
    await expect.poll(() => [...file.stepTail().next()].length).toBe(1)
    const csv = async (what: string) =>
      (await manyworlds(['export', 'r', '--dir', store, '--format', 'csv', '--what', what])).stdout
    expect((await csv('responses')).trimEnd().split('\n')).toHaveLength(2)
    expect(await csv('tasks')).toMatch(/^b,1,.*,pending,/m)
    expect(await csv('steps')).toMatch(/^b,1,0,.*,false,note,/m)
    stop.abort()
    await running
  })
})

describe('a CSV cell', () => {
  const table = (values: readonly string[]): Table<readonly string[]> => ({
    ...{ what: 'tasks', runId: 'r', rows: () => [], nameOf: () => '' },
    columns: values.map((_, place) => ({ name: `c${place}`, type: 'text', value: (row) => row[place] })),
  })

  it('is read back as it was written, and is never a formula', () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(fc.string({ unit: fc.constantFrom(...'=+-@\t\r\n",;\'a0＝ '), minLength: 1 }), { minLength: 1 }),
        async (cells) => {
          const text = csvHeader(table(cells) as unknown as Table<never>) + csvLine(table(cells), cells)
          const [row] = await toArray(fromCsv(textOf(text)))
          for (const [place, cell] of Object.values(row!).entries()) {
            expect(cell).not.toMatch(/^[=+\-@\t\r\n＝＋－＠]/)
            expect(cell === cells[place] || cell === `'${cells[place]}`).toBe(true)
          }
        },
      ),
    ))
})

/** 60 MB of answers: writing them takes a while. */
const largeTasks = () => Array.from({ length: 20 }, (_, n) => echo.task(`${n} `.repeat(1_000_000)))

describe('an exported file', () => {
  it('is not replaced without --force, and links stay links', async () => {
    const { run, out } = await someRun()
    writeFileSync(out('old.csv'), 'mine')
    symlinkSync(out('old.csv'), out('link.csv'))
    const refused = await run('--out', out('old.csv'))
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('use --force to replace it') })
    expect(readFileSync(out('old.csv'), 'utf8')).toBe('mine')
    expect(await run('--out', out('link.csv'), '--force')).toMatchObject({ code: 0 })
    expect(readFileSync(out('old.csv'), 'utf8')).toMatch(/^id,status,/)
    expect(readdirSync(out('.')).filter((name) => name.includes('partial'))).toEqual([])
  })

  it('that cannot be written is one error', async () => {
    const { run, out } = await someRun()
    const refused = async (path: string, words: RegExp) =>
      expect(await run('--out', path, '--force')).toMatchObject({ code: 1, stderr: expect.stringMatching(words) })
    await refused(out('none/r.csv'), /cannot write .*none\/r\.csv: .*ENOENT.*\[EXPORT_FAILED\]\n$/)
    expect(await run('--format', 'csv', '--out', '/dev/null', '--force')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('is not a file'),
    })
  })

  itMounts.each(['jsonl', 'csv', 'parquet'])('is not there if the disk is full: %s', async (format) => {
    const { store } = storeFolder()
    const tasks = Array.from({ length: 20 }, (_, n) => echo.task(`${randomBytes(100_000).toString('hex')} ${n}`))
    await Runners.runTask(tasks, { workerNum: 1, store, runId: 'r' })
    const { path } = ownDisk('size=1m')
    const ended = await manyworlds(['export', 'r', '--dir', store, '--out', join(path, `r.${format}`)])
    expect(ended).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/cannot write .*: ENOSPC.*\[EXPORT_FAILED\]\n$/),
    })
    expect(readdirSync(path)).toEqual([])
  })

  it.each(['jsonl', 'csv', 'parquet'])('is not there after Ctrl-C: %s', { timeout: 180_000 }, async (format) => {
    const { store } = storeFolder()
    const tasks = largeTasks()
    await Runners.runTask(tasks, { workerNum: 1, concurrency: 2, store, runId: 'r' })
    /** Sends SIGINT as soon as the file is begun. */
    const interrupted = async () => {
      const words = ['export', 'r', '--dir', store, '--out', join(store, `r.${format}`), '--force']
      const child = spawn(process.execPath, [MAIN, ...words])
      onTestFinished(() => void child.kill('SIGKILL'))
      let stderr = ''
      child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text))
      const closed = new Promise((done) => child.once('close', done))
      const isBegun = () => child.exitCode !== null || readdirSync(store).some((name) => name.endsWith('.partial'))
      await expect.poll(isBegun, { interval: 5, timeout: 40_000 }).toBe(true)
      child.kill('SIGINT')
      return { code: await closed, stderr }
    }
    let ended = await interrupted()
    // If this process is held up for a moment, the file is written before it can tell the other to stop.
    for (let tries = 1; tries < 10 && ended.code === 0; tries++) {
      rmSync(join(store, `r.${format}`))
      ended = await interrupted()
    }
    expect(ended).toEqual({
      code: 130,
      stderr: `manyworlds: interrupted; ${join(store, `r.${format}`)} was not written\n`,
    })
    expect(readdirSync(store).filter((name) => name.startsWith('.r') || name.startsWith('r.'))).toEqual([])
  })

  it('goes to stdout as fast as it is read, and whoever stops reading ends it quietly', async () => {
    const { store } = storeFolder()
    const tasks = largeTasks()
    await Runners.runTask(tasks, { workerNum: 1, concurrency: 2, store, runId: 'r' })
    const child = spawn(process.execPath, [MAIN, 'export', 'r', '--dir', store, '--format', 'jsonl'])
    onTestFinished(() => void child.kill('SIGKILL'))
    let stderr = ''
    child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text))
    await new Promise((done) => child.stdout.once('data', done))
    child.stdout.destroy()
    expect(await new Promise((done) => child.once('close', done))).toBe(141)
    expect(stderr).toBe('')
  })
})

it('says what is missing', async () => {
  const { store } = storeFolder()
  await Runners.runTask([echo.task(1)], { workerNum: 1, store, runId: 'r' })
  const refused = async (words: string[], text: string) =>
    expect(await manyworlds(['export', ...words, '--dir', store])).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringContaining(text),
    })
  await refused(['r'], 'give --format: csv, jsonl, parquet')
  await refused(['r', '--out', 'x.txt'], 'it cannot be derived from the name of x.txt')
  await refused(['r', '--format', 'parquet'], 'give --out FILE')
  await refused(['none', '--format', 'csv'], "no run 'none'")
  await refused(['r', '--format', 'xml'], 'csv, jsonl')
  expect(existsSync('x.txt')).toBe(false)
})

it('reads back with fromJsonl', async () => {
  const { run, out } = await someRun()
  await run('--out', out('r.jsonl'))
  const read = await toArray(
    fromJsonl(out('r.jsonl'), (row: { id: string; status: string }) => `${row.id} ${row.status}`),
  )
  expect(read).toContain('timeout timeout')
})
