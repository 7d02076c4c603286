import { DistributedExecutor, Runners } from 'manyworlds'
import { afterAll, expect, it } from 'vitest'
import { placementOf } from '../../src/runners/environment.ts'
import { envious, nosy } from '../agents/leaky.ts'
import { nodeForTest } from '../cli/background.ts'
import { manyworlds } from '../cli/manyworlds.ts'
import { project } from '../cli/project.ts'
import { storeFolder } from '../store/store-folder.ts'
import { expectStoreWithout, expectWithout } from './found-in.ts'

afterAll(() => Runners.shutdown())

const KEY = 'sk-test-0a1b2c3d4e5f6g7h8i9j'

/** A script whose workers have something to say before their first task. */
const script = (loading: string, run = 'return key', call = 'await Runners.runTask(work.task(1, { id: "a" })') => `
import { defineAgent, isWorker, Runners } from 'manyworlds'
const key = ['sk-test', '0a1b2c3d4e5f6g7h8i9j'].join('-')
${loading}
const work = defineAgent({ name: 'work', run: async (_: number, ctx) => { ${run} } })
const responses = ${call}, { redact: [key], showLogs: true })
if ((responses.get?.('a') ?? responses).answer === key) console.log('the program has its answer')
`

it.each(['local', 'nodes'])(
  'what workers print while they load code is shown without secrets, behind their id: %s',
  async (engine) => {
    const { options } = project({ 'loud.ts': script("if (isWorker) console.log('loading\\nwith', key)") })
    const node = engine === 'nodes' ? await nodeForTest() : undefined
    const { stdout, stderr } = await manyworlds(['run', 'loud.ts', ...(node ? ['--nodes', node.address] : [])], options)
    // Whichever worker is ready first.
    const id = String.raw`\[${node ? `${node.address}/` : 'local-'}\d\]`
    expect(stderr).toMatch(new RegExp(`${id} loading\n${id} with \\[redacted\\]\n`))
    expect(stdout).toContain('the program has its answer')
    expectWithout([KEY], stdout + stderr, 'the output')
  },
)

it('code that cannot be loaded, and errors of no task, are reported without secrets', async () => {
  const broken = "if (isWorker) throw new Error('no access with ' + key)"
  const stray = "if (isWorker) setTimeout(() => { throw new Error('too late with ' + key) }, 300)"
  const { options } = project({
    'broken.ts': script(broken),
    'stray.ts': script(stray, 'return new Promise((done) => setTimeout(done, 1500, key))'),
  })
  const failed = await manyworlds(['run', 'broken.ts', '--run-id', 'b'], options)
  expect(failed.code).toBe(1)
  expect(failed.stderr).toContain('no access with [redacted]')
  const shown = await manyworlds(['show', 'b'], options)
  expect(shown.stdout).toContain('no access with [redacted]')
  const odd = await manyworlds(['run', 'stray.ts'], options)
  expect(odd.stderr).toContain('too late with [redacted]')
  for (const { stdout, stderr } of [failed, shown, odd]) expectWithout([KEY], stdout + stderr, 'the output')
})

it.each([
  ['a run', undefined],
  ['a run of syncRunTask', 'Runners.syncRunTask([work.task(1, { id: "a" })]'],
])('lines of JSON about %s have no secrets', async (_, call) => {
  const { options } = project({ 'quiet.ts': script('', undefined, call) })
  const { stdout, stderr, code } = await manyworlds(['run', 'quiet.ts', '--json'], options)
  expect(code).toBe(0)
  expect(stdout + stderr).toContain('"answer":"[redacted]"')
  expectWithout([KEY], stdout + stderr, 'the output')
})

it('a sub-task with a secret in its id is refused to its parent', async () => {
  const { store } = storeFolder()
  const { error } = await Runners.runTask(nosy.task(KEY, { id: 'p' }), { store, redact: [KEY] })
  expect(error!.message).toContain("the id of a sub-task contains a secret of the run: 'p/[redacted]'")
})

it('variables that look like secrets are kept from workers, and others are not', () => {
  const secrets = {
    ...{
      OPENAI_API_KEY: 'x',
      TAVILY_API_KEY: 'x',
      GITHUB_TOKEN: 'x',
      GH_TOKEN: 'x',
      NPM_TOKEN: 'x',
      SSH_AUTH_SOCK: '/s',
    },
    ...{ AWS_ACCESS_KEY_ID: 'x', AWS_SECRET_ACCESS_KEY: 'x', AWS_SESSION_TOKEN: 'x', AZURE_CLIENT_SECRET: 'x' },
    ...{ GOOGLE_APPLICATION_CREDENTIALS: '/k.json', DATABASE_URL: 'postgres://db', PGPASSWORD: 'x', MYSQL_PWD: 'x' },
    ...{
      SENTRY_DSN: 'x',
      GITLAB_PAT: 'x',
      my_password: 'x',
      BROKER: 'amqp://me:secret@broker/',
      REDIS_URL: 'redis://r',
    },
  }
  const others = {
    ...{ MAX_TOKENS: '9', TOKENIZERS_PARALLELISM: 'false', KEYBOARD: 'us', PWD: '/', OLDPWD: '/', AWS_REGION: 'eu' },
    ...{
      API_URL: 'https://me@api/v1',
      https_proxy: 'http://me:secret@proxy:1',
      PGHOST: 'db',
      MONKEY: 'x',
      COMPASS: 'n',
    },
    ...{ MANYWORLDS_TOKEN_FILE: '/t' },
  }
  const before = { ...process.env }
  Object.assign(process.env, secrets, others)
  try {
    const { env, withheld } = placementOf({}, 'drop')
    expect(Object.keys(secrets).filter((name) => name in env)).toEqual([])
    expect(withheld).toEqual(expect.arrayContaining(Object.keys(secrets)))
    expect(env).toMatchObject(others)
    expect(placementOf({ GH_TOKEN: 'x' }, 'drop').env).toMatchObject({ GH_TOKEN: 'x' })
  } finally {
    for (const name of Object.keys({ ...secrets, ...others })) {
      if (before[name] === undefined) delete process.env[name]
      else process.env[name] = before[name]
    }
  }
})

it('a variable that is to be withheld is kept from workers, unless the run passes it on', () => {
  process.env.TEST_VENDOR = KEY
  try {
    const open = placementOf({}, 'drop')
    expect(open.env.TEST_VENDOR).toBe(KEY)
    const withheld = placementOf({}, 'drop', ['TEST_VENDOR'])
    expect(withheld.env).not.toHaveProperty('TEST_VENDOR')
    expect(withheld.withheld).toContain('TEST_VENDOR')
    expect(withheld.identity).not.toBe(open.identity)
    const passed = placementOf({ TEST_VENDOR: 'mine' }, 'drop', ['TEST_VENDOR'])
    expect(passed.env.TEST_VENDOR).toBe('mine')
  } finally {
    delete process.env.TEST_VENDOR
  }
})

it('keys of models are secrets, and workers do not get them', async () => {
  const { store, file } = storeFolder()
  const variable = 'TEST_VENDOR_KEY'
  const secrets = [KEY, 'header-0123456789', 'pass word-0123456789']
  process.env[variable] = KEY
  try {
    const baseURL = `http://me:${encodeURIComponent(secrets[2]!)}@127.0.0.1:9/v1`
    const small = { baseURL, model: 'm', apiKeyEnv: variable, headers: { 'x-api-key': secrets[1]!, 'x-team': 'us' } }
    const task = envious.task({ variable, said: [...secrets, 'us'] }, { id: 'a' })
    const response = await Runners.runTask(task, { store, runId: 'r', models: { small } })
    expect(response).toMatchObject({ answer: null, logs: ['[redacted] [redacted] [redacted] us'] })
    await expectStoreWithout(secrets, file('r'), 'r')
    await using executor = new DistributedExecutor({ store, models: { small } })
    executor.submitTask(task)
    expect((await executor.collectResults()).get('a')!.answer).toBeNull()
  } finally {
    delete process.env[variable]
  }
})
