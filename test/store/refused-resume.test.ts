import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type RunConfig, Runners, type TaskLike } from 'manyworlds'
import { RunFile } from 'manyworlds/runs'
import { afterAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { echo, sleeper, stylist } from '../agents/basics.ts'
import { equals, within } from '../agents/graded.ts'
import { ledger } from '../agents/ledger.ts'
import { manyworlds } from '../cli/manyworlds.ts'
import { refused } from '../support/refused.ts'
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

describe('settings that decide answers', () => {
  const small = { baseURL: 'http://127.0.0.1:9/v1', model: 'qwen3-4b', extraBody: { temperature: 0.2, api_key: 'k' } }
  const tasks = (params = stylist.params) => ['a', 'b'].map((id) => stylist.withParams(params).task(id, { id }))
  const begun = async () => {
    const { store } = storeFolder()
    const models = { small }
    await Runners.runTask(tasks(), { ...quick, store, runId: 'r', models, grade: equals })
    const resume = (config: RunConfig, params = stylist.params) =>
      Runners.runTask(tasks(params), { ...quick, store, resume: 'r', models, grade: equals, ...config })
    return { store, resume }
  }

  it('are named if they differ, and the resume is refused', async () => {
    const { resume } = await begun()
    const other = (settings: object) => () => resume({ models: { small: { ...small, ...settings } } })
    await refused(
      other({ model: 'qwen3-8b' }),
      'RESUME_MISMATCH',
      'models.small.model was "qwen3-4b" and is now "qwen3-8b"',
    )
    await refused(
      other({ baseURL: 'http://gpu:8000/v1' }),
      'RESUME_MISMATCH',
      'models.small.baseURL',
      'http://gpu:8000',
    )
    await refused(
      other({ extraBody: { temperature: 0.9, api_key: 'k', top_k: 5 } }),
      'RESUME_MISMATCH',
      'models.small.extraBody.temperature was 0.2 and is now 0.9; models.small.extraBody.top_k was not set and is now 5',
      '--accept-changes',
    )
    await refused(() => resume({ grade: within }), 'RESUME_MISMATCH', 'grade.name was "equals" and is now "within"')
    const long = `${'Be brief and polite. '.repeat(20)}Answer in `
    await refused(
      () => resume({}, { style: 'a', instructions: 'x' }),
      'RESUME_MISMATCH',
      'params.instructions was "" and is now "x"',
      '--accept-changes',
    )
    const { store } = storeFolder()
    const instructed = (language: string) => tasks({ style: 'a', instructions: `${long}${language}.` })
    await Runners.runTask(instructed('French'), { ...quick, store, runId: 'long' })
    await refused(
      () => Runners.runTask(instructed('German'), { ...quick, store, resume: 'long' }),
      'RESUME_MISMATCH',
      'Answer in French."',
      'Answer in German."',
    )
  })

  it('may differ in what decides nothing', async () => {
    const { resume } = await begun()
    const changed = {
      ...small,
      requestsPerMinute: 9,
      headers: { 'x-a': 'b' },
      extraBody: { temperature: 0.2, api_key: 'l' },
    }
    const responses = await resume({ models: { small: changed, another: { ...small, model: 'other' } } })
    expect([...responses.values()].every(({ restored }) => restored)).toBe(true)
  })

  it('are accepted on request: earlier answers stay, and figures are split', async () => {
    const { store, resume } = await begun()
    const changes = { models: { small: { ...small, model: 'qwen3-8b' } } }
    const style = { ...stylist.params, style: 'b2' }
    await refused(() => Runners.runTask(tasks(), { acceptChanges: true }), 'CONFIG_INVALID', '`acceptChanges` needs')
    const accepted = await resume({ ...changes, retryFailed: true, acceptChanges: true }, style)
    expect([...accepted.values()].map(({ answer, restored }) => ({ answer, restored }))).toEqual([
      { answer: 'b2', restored: false },
      { answer: 'a', restored: true },
    ])
    // Accepted once is enough; the old settings are now the others.
    const again = await resume(changes, style)
    expect([...again.values()].map(({ answer }) => answer)).toEqual(['b2', 'a'])
    await refused(() => resume({}, style), 'RESUME_MISMATCH', 'was "qwen3-8b" and is now "qwen3-4b"')
    using file = RunFile.open('r', { store })
    expect(file.settingsParts()).toEqual([
      { first: 1, last: 1, changes: [] },
      {
        ...{ first: 2, last: 3 },
        changes: [
          { key: 'models.small.model', was: 'qwen3-4b', now: 'qwen3-8b' },
          { key: 'stylist.params.style', was: 'a', now: 'b2' },
        ],
      },
    ])
    const { stdout } = await manyworlds(['show', 'r', '--store', store])
    expect(stdout).toContain(`changed when the run was resumed, so its figures mix answers of different settings:
           session 1: 1 answer of 1 task, 0.0 %`)
    expect(stdout).toContain('sessions 2 to 3: 1 answer of 1 task, 0.0 %')
    expect(stdout).toContain('models.small.model was "qwen3-4b" and is now "qwen3-8b"')
    expect(stdout).toContain('stylist.params.style was "a" and is now "b2"')
  })

  it('are all named if they are accepted, and a session that adds no answer splits nothing', async () => {
    const { store, resume } = await begun()
    const lines: string[] = []
    const write = vi.spyOn(process.stderr, 'write').mockImplementation((text) => lines.push(String(text)) > 0)
    onTestFinished(() => write.mockRestore())
    const style = { ...stylist.params, style: 'b3' }
    const changes = { models: { small: { ...small, model: 'qwen3-8b' } } }
    await resume({ ...changes, acceptChanges: true }, style)
    const said = lines.join('')
    expect(said).toContain('models.small.model was "qwen3-4b" and is now "qwen3-8b"')
    expect(said.match(/stylist.params.style was "a" and is now "b3"/g)).toHaveLength(1)
    expect(said).toContain('if others are added, its figures mix both')
    {
      using file = RunFile.open('r', { store })
      expect(file.settingsParts()).toEqual([{ first: 1, last: 2, changes: [] }])
    }
    // Accepted by the session before, which had nothing to do.
    await resume({ ...changes, retryFailed: true }, style)
    using file = RunFile.open('r', { store })
    expect(file.settingsParts()).toMatchObject([
      { first: 1, last: 2 },
      { first: 3, last: 3, changes: [{ now: 'qwen3-8b' }, { now: 'b3' }] },
    ])
  })
})
