import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Runners, type TaskLike } from 'manyworlds'
import { afterAll, describe, expect, it } from 'vitest'
import { echo, sleeper } from '../agents/basics.ts'
import { ledger } from '../agents/ledger.ts'
import { refused } from '../refused.ts'
import { query, storeFolder } from './store-folder.ts'

afterAll(() => Runners.shutdown())

const quick = { workerNum: 1, backoffMs: 1 }

const some = ({ ledger: path }: ReturnType<typeof storeFolder>, count = 6) =>
  Array.from({ length: count }, (_, i) => ledger.task({ ledger: path, say: i, ms: 20 }, { id: `t${i}` }))

describe('a resume is refused, by name and with nothing changed,', () => {
  const begun = async () => {
    const folder = storeFolder()
    const tasks = [
      ledger.task({ ledger: folder.ledger, say: 'as before' }, { id: 'same' }),
      ledger.task({ ledger: folder.ledger, say: 'old' }, { id: 'edited', metadata: { a: 1 } }),
      echo.withParams('p' as never).task(1, { id: 'params' }),
    ]
    const { store } = folder
    await Runners.runTask(tasks, { ...quick, store, runId: 'r' })
    const before = query(folder.file('r'), 'SELECT * FROM run')
    const resume =
      (changed: readonly TaskLike[], config: object = {}) =>
      () =>
        Runners.runTask(changed as never, { ...quick, store, resume: 'r', ...config })
    const unchanged = () => expect(query(folder.file('r'), 'SELECT * FROM run')).toEqual(before)
    return { tasks: tasks as TaskLike[], resume, unchanged, folder }
  }

  it('when the input of a task was edited', async () => {
    const { tasks, resume, unchanged, folder } = await begun()
    const edited = [tasks[0]!, { ...tasks[1]!, input: { ledger: folder.ledger, say: 'new' } }, tasks[2]!]
    await refused(resume(edited), 'RESUME_MISMATCH', "'edited'", 'input', 'old', 'new', "'r'")
    unchanged()
  })

  it('when what the agent is told besides was edited', async () => {
    const { tasks, resume } = await begun()
    const edited = [tasks[0]!, { ...tasks[1]!, metadata: { a: 2 } }, tasks[2]!]
    await refused(resume(edited), 'RESUME_MISMATCH', "'edited'", 'metadata')
  })

  it('when a task has another agent', async () => {
    const { tasks, resume } = await begun()
    await refused(
      resume([tasks[0]!, tasks[1]!, sleeper.task(1, { id: 'params' })]),
      'RESUME_MISMATCH',
      "'params'",
      "'echo'",
      "'sleeper'",
    )
  })

  it('when the params of an agent differ', async () => {
    const { tasks, resume } = await begun()
    await refused(
      resume([tasks[0]!, tasks[1]!, echo.withParams('q' as never).task(1, { id: 'params' })]),
      'RESUME_MISMATCH',
      'params',
      '"p"',
      '"q"',
    )
  })

  it('when dependencies differ', async () => {
    const { tasks, resume } = await begun()
    await refused(
      resume([tasks[0]!, { ...tasks[1]!, dependsOn: ['same'] }, tasks[2]!]),
      'RESUME_MISMATCH',
      "'edited'",
      'dependsOn',
    )
  })

  it('when a task of the array is missing, or new', async () => {
    const { tasks, resume, unchanged } = await begun()
    await refused(resume(tasks.slice(0, 2)), 'RESUME_MISMATCH', "'params' is missing")
    await refused(resume([...tasks, echo.task(4, { id: 'late' })]), 'RESUME_MISMATCH', "'late' is new")
    unchanged()
  })

  it('when the seed differs, or a sequence is none any more', async () => {
    const { tasks, resume } = await begun()
    await refused(resume(tasks, { seed: 5 }), 'RESUME_MISMATCH', 'seed 0', '5')
    await refused(resume(tasks, { sequenceDependent: true }), 'RESUME_MISMATCH', 'sequenceDependent')
  })

  it('when a sequence has another order', async () => {
    const folder = storeFolder()
    const config = { ...quick, store: folder.store, sequenceDependent: true }
    await Runners.runTask(some(folder), { ...config, runId: 'r' })
    await refused(
      () => Runners.runTask(some(folder).toReversed(), { ...config, resume: 'r' }),
      'RESUME_MISMATCH',
      "'t5'",
      'number 1',
      'number 6',
    )
  })

  it('when a task of an iterable was edited: after what was under way is answered', async () => {
    const folder = storeFolder()
    const { store } = folder
    await Runners.runTask(some(folder), { ...quick, store, runId: 'r' })
    const edited = [...some(folder, 3), ledger.task({ ledger: folder.ledger, say: 'other' }, { id: 't3' })]
    const error = await refused(
      () => Runners.runTask(edited.values(), { ...quick, store, resume: 'r' }),
      'RESUME_MISMATCH',
      "'t3'",
    )
    expect([...error.responses!.keys()]).toEqual(['t0', 't1', 't2'])
  })

  it('when there is no such run, or it is there already', async () => {
    const { tasks, resume, folder } = await begun()
    await refused(resume(tasks, { resume: 'other' }), 'RUN_NOT_FOUND', "'other'", 'manyworlds runs')
    await refused(
      () => Runners.runTask(tasks as never, { store: folder.store, runId: 'r' }),
      'RUN_EXISTS',
      "'r'",
      "resume: 'auto'",
      'manyworlds rm ',
    )
  })

  it.each([
    [{ resume: 'auto' }, 'runId'],
    [{ resume: 'a', runId: 'b' }, "'a'"],
    [{ resume: 'a', store: false }, 'store'],
    [{ retryFailed: true }, 'resume'],
    [{ runId: 'auto' }, 'auto'],
    [{ runId: 'a/b' }, 'letters'],
    [{ runId: '../x' }, 'letters'],
    [{ resume: '' }, 'resume'],
    [{ store: 5 }, 'path'],
    [{ durability: 'most' }, "'full'"],
    [{ progress: 'yes' }, 'progress'],
  ])('when the configuration makes no sense: %j', async (config, word) => {
    await refused(() => Runners.runTask(echo.task(1), { store: 'x', ...config } as never), 'CONFIG_INVALID', word)
  })

  it('when the file is some other file', async () => {
    const { store, file } = storeFolder()
    writeFileSync(file('r'), 'just text, and long enough to be taken for something'.repeat(50))
    await refused(
      () => Runners.runTask(echo.task(1), { store, resume: 'r' }),
      'NOT_A_STORE',
      'store.sqlite is a text file',
    )
  })

  it.each([
    ['a text file', 'notes.txt', Buffer.from('# Notes\n\nnaïve\n')],
    ['a text file', 'rows.sqlite', Buffer.from(`{"id":1}\n`.repeat(2000))],
    ['a PNG image', 'photo.png', Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex')],
    ['a gzip file', 'store.sqlite', Buffer.from('1f8b0800000000000003', 'hex')],
  ])('when it is %s, %s, which is left as it is', async (kind, name, bytes) => {
    const { store } = storeFolder()
    mkdirSync(store, { recursive: true })
    const path = join(store, name)
    writeFileSync(path, bytes)
    const error = await refused(
      () => Runners.runTask(echo.task(1), { store: path }),
      'NOT_A_STORE',
      `${path} is ${kind}`,
    )
    expect(error.message).not.toMatch(/damaged|recover/)
    expect(readFileSync(path).equals(bytes)).toBe(true)
    expect(readdirSync(store)).toEqual([name])
  })

  it('when it is a folder with the name of a file', async () => {
    const { store } = storeFolder()
    const path = join(store, 'r.sqlite')
    mkdirSync(path, { recursive: true })
    await refused(() => Runners.runTask(echo.task(1), { store: path }), 'NOT_A_STORE', `${path} is a folder`)
  })
})
