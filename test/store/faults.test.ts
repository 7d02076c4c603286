import { spawn } from 'node:child_process'
import {
  copyFileSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join, resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { Runners, type TaskLike } from 'manyworlds'
import { RunFile } from 'manyworlds/runs'
import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import { asker } from '../agents/askers.ts'
import { echo } from '../agents/basics.ts'
import { ledger } from '../agents/ledger.ts'
import { manyworlds } from '../cli/manyworlds.ts'
import { refused } from '../support/refused.ts'
import { printed, runScript } from '../support/run-script.ts'
import { itMounts, ownDisk } from './own-disk.ts'
import { query, storeFolder } from './store-folder.ts'

afterAll(() => Runners.shutdown())

const many = Array.from({ length: 500 }, (_, i) => echo.task({ i, text: 'x'.repeat(300) }, { id: `t${i}` }))

/** A run file of some size, finished: one run alone. */
async function finished() {
  const folder = storeFolder()
  const store = folder.own('r')
  await Runners.runTask(many, { store, runId: 'r' })
  return { ...folder, store, path: store, resume: () => Runners.runTask(many, { store, resume: 'r' }) }
}

describe('a disk that is full', () => {
  itMounts('is one clear error, and a resume goes on when there is room', async () => {
    const disk = ownDisk('size=40m')
    const ended = await runScript('store/small-disk.ts', { ...disk, args: [disk.path, 'mend-late'] })
    expect(printed(ended), ended.stderr).toEqual([
      { code: 'STORE_FULL', message: expect.stringContaining('free some space and resume the run'), some: true },
      { answered: 400, kept: true },
      { size: true },
    ])
    expect(ended.stderr).toContain('the disk is full')
  })

  itMounts('is no error when room is made soon', async () => {
    const disk = ownDisk('size=40m')
    const ended = await runScript('store/small-disk.ts', { ...disk, args: [disk.path, 'mend-soon'] })
    expect(printed(ended), ended.stderr).toEqual([{ finished: 400 }, { size: true }])
    expect(ended.stderr).toContain('the disk is full')
  })
})

describe('a folder that cannot be written', () => {
  itMounts('is one clear error, before anything starts', async () => {
    const disk = ownDisk('size=4m', 'ro')
    const ended = await runScript('store/read-only.ts', { ...disk, args: [disk.path] })
    expect(printed(ended), ended.stderr).toEqual([
      {
        code: 'STORE_NOT_WRITABLE',
        message: expect.stringMatching(/the file system is read-only, EROFS.*`store: "path"`/),
      },
      { code: 'RUN_NOT_FOUND', message: expect.stringContaining("no run 'old'") },
    ])
  })

  it('is one clear error where a part of the path is a file', async () => {
    const { store } = storeFolder()
    writeFileSync(join(store, 'file'), '')
    await refused(
      () => Runners.runTask(echo.task(1), { store: join(store, 'file', 'runs') }),
      'STORE_NOT_WRITABLE',
      'runs',
    )
  })
})

describe('a damaged run file', () => {
  it.each([
    ['in its header', 0, 100],
    ['in its schema', 100, 60],
    ['in the middle', 0.4, 20_000],
    ['at its end', 0.9, 4096],
  ])('is refused and left as it is: %s', async (_where, at, length) => {
    const { path, resume } = await finished()
    overwrite(path, at < 1 ? Math.floor(statSync(path).size * at) : at, length)
    const before = readFileSync(path)
    await refused(resume, 'STORE_CORRUPT', path, '.recover')
    expect(readFileSync(path).equals(before)).toBe(true)
  })

  it('is refused when it was cut short', async () => {
    const { path, resume } = await finished()
    truncateSync(path, Math.floor(statSync(path).size / 2))
    await refused(resume, 'STORE_CORRUPT', path)
  })

  it('is made anew with auto when it is empty: its driver died before it wrote anything', async () => {
    const { path, resume, store } = await finished()
    truncateSync(path, 0)
    await refused(resume, 'STORE_CORRUPT', 'it is empty')
    expect((await Runners.runTask(many, { store, runId: 'r', resume: 'auto' })).size).toBe(500)
  })

  it('does not hide what can still be read of it', async () => {
    const { path } = await finished()
    using run = RunFile.open(path)
    expect(run.overview().counts.success).toBe(500)
    overwrite(path, Math.floor(statSync(path).size * 0.5), 8192)
    using damaged = RunFile.open(path)
    const read = () => [...damaged.responses()].length
    expect(read).toThrow(expect.objectContaining({ code: 'STORE_CORRUPT' }))
  })
})

it('a file of a newer schema is refused, with what to do', async () => {
  const { path, resume } = await finished()
  alter(path, 'PRAGMA user_version = 99')
  await refused(resume, 'STORE_NEWER', 'schema 99', 'Update manyworlds')
  expect(() => RunFile.open(path)).toThrow(expect.objectContaining({ code: 'STORE_NEWER' }))
})

it('an SQLite file of somebody else is refused', async () => {
  const { store, file } = storeFolder()
  alter(file('r'), 'CREATE TABLE mine (x); INSERT INTO mine VALUES (1)')
  await refused(
    () => Runners.runTask(echo.task(1), { store, resume: 'r' }),
    'NOT_A_STORE',
    'another SQLite database with the table `mine`',
  )
  expect(query(file('r'), 'SELECT x FROM mine')).toEqual([{ x: 1 }])
})

describe('one driver per run', () => {
  it('refuses a second one by name, also while the first is stopped, and takes over when it is dead', {
    timeout: 180_000,
  }, async () => {
    const { store, ledger: path, file, ran } = storeFolder()
    const first = driver(store, path, 600_000)
    await first.says('t2')
    const resume = () => runScript('store/long-run.ts', { args: [store, path, '10'] })
    const second = await resume()
    expect(second.stderr).toContain('RUN_LOCKED')
    expect(second.stderr).toContain(`process ${first.pid} on`)
    process.kill(first.pid, 'SIGSTOP')
    expect((await resume()).stderr).toContain('RUN_LOCKED')
    process.kill(first.pid, 'SIGKILL')
    await first.gone
    // What was running then is to be done again.
    using dead = RunFile.open('r', { store })
    expect(dead.task('t3')).toMatchObject({ status: 'pending', unfinished: [{ attempt: 1, session: 1 }] })
    const third = await resume()
    expect(third.stderr).toBe('')
    expect(printed(third)).toEqual([
      ...['t0', 't1', 't2'].map((id) => ({ id, restored: true })),
      { id: 't3', restored: false },
    ])
    expect(ran()).toEqual(['t0', 't1', 't2', 't3', 't3'])
    expect(query(file('r'), 'SELECT ending FROM sessions')).toEqual([{ ending: null }, { ending: 'finished' }])
  })

  it('refuses a second run of the same name in the same process', async () => {
    const { store } = storeFolder()
    const { gate, reached, open } = gated()
    const config = { store, runId: 'r', resume: 'auto', services: { gate } } as const
    const task = asker.task({ service: 'gate' })
    const first = Runners.runTask(task, config)
    await reached
    await refused(() => Runners.runTask(task, config), 'RUN_LOCKED', String(process.pid))
    open()
    expect((await first).success).toBe(true)
  })

  it('writes nothing more once another has taken over, where a lock does not hold', async () => {
    const { store, ledger: path, file } = storeFolder()
    const { gate, open } = gated()
    // The second is done after the other has taken over.
    const tasks: TaskLike[] = [ledger.task({ ledger: path }), asker.task({ service: 'gate' })]
    const error = await refused(
      async () => {
        for await (const _ of Runners.streamTask(tasks, { store, runId: 'r', services: { gate } })) {
          alter(file('r'), 'UPDATE _run SET epoch = 7')
          open()
        }
      },
      'RUN_LOCKED',
      'taken over',
    )
    expect(error.message).toContain(file('r'))
    expect(query(file('r'), 'SELECT id FROM responses')).toEqual([{ id: '#1' }])
  })

  it('notices that its file was removed', async () => {
    const { store, ledger: path, file } = storeFolder()
    const { gate, open } = gated()
    const tasks: TaskLike[] = [ledger.task({ ledger: path }), asker.task({ service: 'gate' })]
    await refused(
      async () => {
        for await (const _ of Runners.streamTask(tasks, { store, runId: 'r', services: { gate } })) {
          rmSync(file('r'))
          open()
        }
      },
      'STORE_FAILED',
      'removed',
    )
  })
})

itMounts('a store of many runs can be read on a read-only disk, and not written', { timeout: 120_000 }, async () => {
  const { store, file } = storeFolder()
  for (const runId of ['a', 'b']) await Runners.runTask(many, { store, runId })
  await Runners.shutdown()
  // The thread that writes keeps a store open for a second.
  await expect.poll(() => readdirSync(store), { timeout: 30_000 }).toEqual(['store.sqlite'])
  const disk = ownDisk('size=4m', 'ro', (folder) => copyFileSync(file('a'), join(folder, 'store.sqlite')))
  const options = { cwd: store, env: { MANYWORLDS_STORE: disk.path } }
  const runs = await manyworlds(['runs'], options)
  expect(runs.stdout.match(/^[ab] +finished/gm), runs.stderr).toHaveLength(2)
  expect((await manyworlds(['show', 'b', 't7'], options)).stdout).toContain('success')
  expect((await manyworlds(['export-run', 'b', join(store, 'b.sqlite')], options)).code).toBe(0)
  using copy = RunFile.open(join(store, 'b.sqlite'))
  expect([...copy.responses()]).toHaveLength(500)
  const removed = await manyworlds(['rm', 'a', '--yes'], options)
  expect(removed.stderr).toMatch(/^manyworlds: [^\n]* \[STORE_NOT_WRITABLE\]\n$/)
})

itMounts('a finished run file can be copied away and read in a folder that cannot be written', async () => {
  const { path } = await finished()
  const disk = ownDisk('size=4m', 'ro', (folder) => copyFileSync(path, join(folder, 'copy.sqlite')))
  const script = `import { RunFile } from 'manyworlds/runs'
    using run = RunFile.open(process.argv.at(-1))
    console.log(JSON.stringify([...run.responses()].length))`
  const flags = ['--input-type=module', '--eval', script]
  const ended = await runScript(undefined, {
    ...disk,
    flags,
    args: [join(disk.path, 'copy.sqlite')],
    cwd: resolve(import.meta.dirname),
  })
  expect(printed(ended), ended.stderr).toEqual([500])
})

/** A service that answers when it is told to. */
function gated() {
  const reached = Promise.withResolvers<void>()
  const answer = Promise.withResolvers<void>()
  const gate = () => {
    reached.resolve()
    return answer.promise
  }
  return { gate, reached: reached.promise, open: () => answer.resolve() }
}

function driver(store: string, path: string, ms: number) {
  const script = resolve(import.meta.dirname, '../scripts/store/long-run.ts')
  const child = spawn(process.execPath, [script, store, path, String(ms)], {
    env: { ...process.env, VITEST: undefined },
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  let said = ''
  child.stdout.on('data', (text) => {
    said += text
  })
  return {
    pid: child.pid!,
    says: (text: string) => expect.poll(() => said, { timeout: 60_000 }).toContain(text),
    gone: new Promise((done) => child.once('close', done)),
  }
}

function overwrite(path: string, at: number, length: number): void {
  writeSync(openSync(path, 'r+'), Buffer.alloc(length, 0x5a), 0, length, at)
}

function alter(path: string, sql: string): void {
  // The thread that writes may be in the middle of a commit.
  using db = new DatabaseSync(path, { timeout: 30_000 })
  db.exec(sql)
}
