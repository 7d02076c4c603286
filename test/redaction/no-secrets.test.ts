import { Runners } from 'manyworlds'
import { RunFile } from 'manyworlds/runs'
import { afterAll, describe, expect, it, vi } from 'vitest'
import type { StepContent } from '../../src/trajectory/step.ts'
import { blame, burglar, echo, type Leak, leaky, praise } from '../agents/leaky.ts'
import { manyworlds } from '../cli/manyworlds.ts'
import { query, storeFolder } from '../store/store-folder.ts'
import { model } from '../trajectory/made.ts'
import { expectStoreWithout, expectWithout } from './found-in.ts'

afterAll(() => Runners.shutdown())

const KEY = 'sk-test-0a1b2c3d4e5f6g7h8i9j'
/** With everything in it that JSON, URLs and base64 write in another way. */
const ODD = 'p"a\\s/s+w=ör d-💥-9876543210'
const TOKEN = 'tok_abcdefghij0123456789'
const SECRETS = [KEY, ODD, TOKEN]
const redact = [KEY, ODD, /tok_[a-z0-9]{20}/]

/** A conversation with a secret in its second message, then two steps that continue it, then one that has nothing to do with it. */
const conversation = (secret: string): StepContent[] => {
  const said = [
    { role: 'system', content: 'be good '.repeat(20) },
    { role: 'user', content: `my key is ${secret}` },
  ] as const
  const wire = JSON.stringify({ messages: said })
  const more = { role: 'user', content: 'go on' } as const
  return [
    model({ request: { from: null, keep: 0, added: said, tools: '', wire }, ids: [1, 2, 3, 4, 5, 6, 7, 8, 9] }),
    model({
      request: { from: 2, keep: 3, added: [more], tools: '', wire: '{}' },
      tail: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
    }),
    // As an agent records it that sends all messages each time: the list is a link to that of the first step.
    model({ request: { from: null, keep: 0, added: [...said, more], tools: '', wire: '{}' } }),
    model({ request: { from: null, keep: 0, added: [more], tools: '', wire: '{}' } }),
    {
      ...{ kind: 'tool', call: null, name: 'curl', ms: 1, reward: 1 },
      arguments: { raw: JSON.stringify({ authorization: `Bearer ${secret}` }), value: { key: secret } },
      result: [`HTTP 401: ${secret}`],
    },
  ]
}

const services = (secret: string, asked: unknown[]) => ({
  vault: {
    durable: true,
    answer: (question: unknown) => {
      asked.push(question)
      return question === 'open' ? { opened: secret } : 'nothing to hide'
    },
  },
})

describe.each([
  ['a plain key', KEY, true],
  ['one that has to be escaped', ODD, true],
  // A pattern is looked for in texts as they are.
  ['one that a pattern finds', TOKEN, false],
])('%s', (_, secret, derived) => {
  it('is nowhere in the store, in what is printed, in steps and in errors; the program gets its answers whole', async () => {
    const { store, ledger, file } = storeFolder()
    const agent = leaky.withParams({ key: secret })
    const metadata = { secret, [`${secret}!`]: [secret] }
    const input: Leak = { secret, ledger, derived, steps: conversation(secret) }
    const tasks = [
      agent.task(input, { id: 'good', metadata, groundTruth: secret, tools: [secret] }),
      agent.task({ ...input, fails: true }, { id: 'bad', maxAttempts: 2 }),
      agent.task({ ...input, crashes: true }, { id: 'crash' }),
      echo.task(new Map([[secret, new Error(secret, { cause: { secret } })]]), { id: 'map' }),
      echo.task(`${secret} `.repeat(3000), { id: 'long', grade: blame }),
    ]
    const asked: unknown[] = []
    const seen: unknown[] = []
    const printed = vi.spyOn(process.stderr, 'write').mockImplementation(() => true)
    const config = { store, runId: 'r', redact, showLogs: true, grade: praise, services: services(secret, asked) }
    const onStep = (event: unknown) => seen.push(event)
    const responses = await Runners.runTask(tasks, { ...config, workerNum: 1, concurrency: 1, backoffMs: 1, onStep })
    const lines = printed.mock.calls.map(([text]) => String(text)).join('')
    printed.mockRestore()

    expect(lines).toContain('[good] log [redacted] [redacted]')
    expectWithout(SECRETS, lines, 'stderr')
    expect(seen.length).toBeGreaterThan(10)
    expectWithout(SECRETS, JSON.stringify(seen), 'onStep')

    const good = responses.get('good')!
    expect(good.answer).toMatchObject({ answer: { opened: secret }, made: { made: secret }, [secret]: 'key' })
    expect(good.logs[0]).toBe('log [redacted] [redacted]')
    expect(good.trajectory[0]).toMatchObject({ text: 'note [redacted]' })
    expect(good.grade!.feedback).toContain('[redacted]')
    expect(good.digest).toBeUndefined()
    const bad = responses.get('bad')!
    expect(bad.error!.message).toBe('failed with [redacted]')
    expect((bad.error!.cause as Error).cause).toMatchObject({ message: 'because of [redacted]' })
    const crash = responses.get('crash')!
    expect(crash.error!.message).toContain('last words: [redacted]')
    for (const { id, error, logs, trajectory, grade } of responses.values())
      expectWithout(SECRETS, JSON.stringify([error?.message, error?.stack, logs, trajectory, grade]), id)

    await expectStoreWithout(SECRETS, file('r'), 'r')
    for (const words of [
      ...[
        ['show', 'r'],
        ['show', 'r', '--logs', '--full'],
        ['show', 'r', '--json'],
      ],
      ...['good', 'bad', 'crash', 'map', 'long'].map((id) => ['show', 'r', id, '--full']),
      ['show', 'r', 'good', '--json'],
      ['tail', 'r', '--from-start', '--steps'],
      ...['responses', 'steps', 'tasks'].map((what) => [
        'export',
        'r',
        '--what',
        what,
        '--format',
        'jsonl',
        '--subtasks',
      ]),
    ]) {
      const { stdout, stderr, code } = await manyworlds([...words, '--store', store])
      expect(stdout.length, `${words.join(' ')}: ${stderr}`).toBeGreaterThan(50)
      expect(code).not.toBe(2)
      expectWithout(SECRETS, stdout + stderr, words.join(' '))
    }
    // The questions without a secret whose answers have none are stored; for each of the three tasks, and the second attempt of one.
    const stored = query(file('r'), 'SELECT service, value FROM answers')
    expect(new Set(stored.map(({ service, value }) => `${service} ${value}`))).toEqual(
      new Set(['vault "nothing to hide"']),
    )
  }, 240_000)
})

it('a model step that had a secret, and those that continue it, have no tokens and are refused for training', async () => {
  const { store, ledger } = storeFolder()
  const input: Leak = { secret: KEY, ledger, steps: conversation(KEY) }
  const config = { store, runId: 'r', redact: [KEY], services: services('nothing', []) }
  const { trajectory, toTrajectory } = await Runners.runTask(leaky.task(input), config).then((response) => ({
    trajectory: response.trajectory,
    toTrajectory: () => response.toTrajectory(),
  }))
  const models = trajectory.filter((step) => step.kind === 'model')
  expect(models.map(({ redacted, tokens }) => [redacted ?? false, tokens === null])).toEqual([
    [true, true],
    [true, true],
    [true, true],
    [false, false],
  ])
  expect(models[2]!.request.added[1]!.content).toBe('my key is [redacted]')
  const { checkTrajectory, tokenRows } = await import('manyworlds/runs')
  const whole = await toTrajectory()
  expect(checkTrajectory(whole)).toEqual([])
  const { rows, refused } = tokenRows(whole)
  expect(rows).toHaveLength(1)
  expect(refused.map(({ step, why }) => [step, why])).toEqual(
    [2, 3, 4].map((step) => [step, `step ${step} contained secrets, which were removed together with its tokens`]),
  )
})

it('an episode that ends with a secret is stored without it, and has no digest; others have theirs', async () => {
  const { store, file } = storeFolder()
  const play = (input: string, more: object) => Runners.runTask(burglar.task(input, { id: 'b' }), { store, ...more })
  const open = await play('a lamp', { runId: 'open' })
  const watched = await play('a lamp', { runId: 'watched', redact })
  expect(open.digest).toMatch(/^[0-9a-f]{64}$/)
  expect(watched.digest).toBe(open.digest)
  const secret = await play(KEY, { runId: 'secret', redact })
  expect(secret).toMatchObject({ answer: KEY, episode: { finalObservation: KEY } })
  expect(secret.digest).toBeUndefined()
  expect(query(file('secret'), "SELECT digest, answer FROM responses WHERE run_id = 'secret'")).toEqual([
    { digest: null, answer: '"[redacted]"' },
  ])
  await expectStoreWithout(SECRETS, file('secret'), 'secret')
})

describe('a resumed run', () => {
  const quiet = (secret: string, ledger: string, n: number): Leak => ({ secret, ledger: `${ledger}`, quiet: n > 0 })

  it('knows its tasks again, runs nothing twice, and has the answers without secrets', async () => {
    const { store, ledger, ran, file } = storeFolder()
    const tasks = () => [
      leaky.task(quiet(KEY, ledger, 1), { id: 'a', metadata: { KEY } }),
      leaky.withParams({ key: KEY }).task(quiet(ODD, ledger, 1), { id: 'b' }),
      echo.task(new Map([[KEY, ODD]]), { id: 'c' }),
    ]
    const first = await Runners.runTask(tasks(), { store, runId: 'r', redact })
    expect(first.get('a')!.answer).toEqual({ echo: KEY })
    const again = await Runners.runTask(tasks(), { store, resume: 'r', redact })
    expect([...again.values()].map(({ restored, answer }) => [restored, answer])).toEqual([
      [true, { echo: '[redacted]' }],
      [true, { echo: '[redacted]' }],
      [true, { echo: new Map([['[redacted]', '[redacted]']]) }],
    ])
    expect(ran().sort()).toEqual(['a', 'b'])
    await expectStoreWithout(SECRETS, file('r'), 'r')
  })

  it('may have another key, or more secrets than before', async () => {
    const { store, ledger, ran } = storeFolder()
    const task = (secret: string) => leaky.task(quiet(secret, ledger, 1), { id: 'a' })
    await Runners.runTask(task(KEY), { store, runId: 'rotated', redact: [KEY] })
    const other = 'sk-test-the-key-of-tomorrow'
    expect((await Runners.runTask(task(other), { store, resume: 'rotated', redact: [other] })).restored).toBe(true)
    await Runners.runTask(task(KEY), { store, runId: 'later' })
    expect((await Runners.runTask(task(KEY), { store, resume: 'later', redact: [KEY] })).restored).toBe(true)
    expect(ran()).toEqual(['a', 'a'])
  })

  it('does not show a secret when it refuses other tasks', async () => {
    const { store } = storeFolder()
    await Runners.runTask(echo.task({ key: KEY, n: 1 }, { id: 'a' }), { store, runId: 'r' })
    const resumed = Runners.runTask(echo.task({ key: KEY, n: 2 }, { id: 'a' }), { store, resume: 'r', redact: [KEY] })
    await expect(resumed).rejects.toMatchObject({
      code: 'RESUME_MISMATCH',
      message: expect.stringContaining('{"key":"[redacted]","n":1}'),
    })
  })

  it('asks again for answers that were not stored', async () => {
    const { store, ledger, file } = storeFolder()
    const asked: unknown[] = []
    const run = (more: object) =>
      Runners.runTask(leaky.task({ secret: KEY, ledger, fails: true }, { id: 'a' }), {
        ...{ store, redact: [KEY], services: services(KEY, asked) },
        ...more,
      })
    const printed = vi.spyOn(process.stderr, 'write').mockImplementation(() => true)
    await run({ runId: 'r' })
    const lines = printed.mock.calls.map(([text]) => String(text)).join('')
    printed.mockRestore()
    expect(lines).toContain(
      '2 service answers and 1 `ctx.once` result were not stored, because the answer or its request contains secrets',
    )
    expect(query(file('r'), 'SELECT value FROM answers')).toEqual([{ value: '"nothing to hide"' }])
    expect(asked).toEqual(['open', 'innocent', `with ${KEY}`])
    await run({ resume: 'r', retryFailed: true })
    expect(asked).toHaveLength(6)
  })
})

it('a task with a secret in its id is refused before anything starts', async () => {
  const { store, ledger, ran } = storeFolder()
  const input = { secret: 'x', ledger, quiet: true }
  const tasks = [leaky.task(input, { id: 'a' }), leaky.task(input, { id: `b-${KEY}` })]
  await expect(Runners.runTask(tasks, { store, redact: [KEY] })).rejects.toMatchObject({
    code: 'TASK_INVALID',
    message: expect.stringContaining("the id of task 2 contains a secret of the run: 'b-[redacted]'"),
  })
  expect(ran()).toEqual([])
  const group = leaky.task(input, { id: 'a', groupId: KEY })
  await expect(Runners.runTask(group, { store, redact: [KEY] })).rejects.toMatchObject({ code: 'TASK_INVALID' })
  using runs = { list: RunFile.list({ store }), [Symbol.dispose]: () => {} }
  expect(runs.list).toEqual([])
})

it.each([
  [['short'], /`redact.0` must have at least 8 characters: .*, it is a string$/],
  [[12345678], /`redact.0` must be a string or a regular expression, it is a number/],
  [[/x*/], /`redact.0` must not match the empty text/],
  [[KEY, /sk-/y], /`redact.1` must not have the flag y/],
  [[/\[\w+\]/], /`redact.0` must not match its own replacement, \[redacted\]/],
  ['sk-test-0a1b2c3d4e5f', /`redact` must be an array/],
])('refuses %o', async (bad, words) => {
  const run = Runners.runTask(echo.task(1), { redact: bad as never })
  await expect(run).rejects.toMatchObject({ code: 'CONFIG_INVALID', message: expect.stringMatching(words) })
})
