import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type ModelServer, startModelServer } from '../models/scripted-server.ts'
import { printed } from '../support/run-script.ts'
import { manyworlds } from './manyworlds.ts'
import { project } from './project.ts'

let server: ModelServer
let guarded: ModelServer
const KEY = 'sk-planted-secret-1234'

beforeAll(async () => {
  ;[server, guarded] = await Promise.all([startModelServer(), startModelServer({ apiKey: KEY })])
})
afterAll(() => Promise.all([server.close(), guarded.close()]))

/** A folder with this models.json. */
const folder = (models: object, files: Readonly<Record<string, string>> = {}) =>
  project({ 'models.json': JSON.stringify(models), ...files })

describe('manyworlds models', () => {
  it('prints what each model can do', async () => {
    const { baseURL } = server
    const { options } = folder({
      vllm: { baseURL, model: 'vllm+tools:1', requestsPerMinute: 6000, tokensPerMinute: 1e6, maxConcurrent: 8 },
      plain: { baseURL, model: 'json+usage:none' },
      keyed: { baseURL: guarded.baseURL, model: 'text', apiKeyEnv: 'TEST_MODEL_KEY' },
    })
    const { code, stdout, stderr } = await manyworlds(['models'], {
      ...options,
      env: { ...options.env, TEST_MODEL_KEY: KEY },
    })
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    const [head, ...rows] = stdout.trimEnd().split('\n')
    const cells = (line: string) => line.split(/ {2,}/)
    expect(cells(head!)).toEqual([
      ...[
        'name',
        'model',
        'where',
        'via',
        'latency',
        'token ids',
        'log-probs',
        'tools',
        'JSON schema',
        'usage',
        'limits',
      ],
    ])
    const ms = expect.stringMatching(/^[\d.]+ (ms|s)$/)
    const unknown = 'unknown: learned during the run'
    expect(rows.map(cells)).toEqual([
      ['keyed', 'text', guarded.baseURL, 'driver', ms, 'no', 'yes', 'no', 'no', 'yes', unknown],
      ['plain', 'json+usage:none', baseURL, 'direct', ms, 'no', 'yes', 'no', 'yes', 'no', unknown],
      [
        ...['vllm', 'vllm+tools:1', baseURL, 'direct', ms, 'yes', 'yes', 'yes', 'no', 'yes'],
        '6,000 requests/min, 1,000,000 tokens/min, 8 at once',
      ],
    ])
    expect(stdout).not.toContain(KEY)
  })

  it('says of each that does not answer what is wrong, and tries the others', async () => {
    const { baseURL } = server
    const { options } = folder({
      down: { baseURL: 'http://user:planted-password@127.0.0.1:1/v1', model: 'text', maxRetries: 0 },
      wrong: { baseURL: guarded.baseURL, model: 'text', apiKeyEnv: 'TEST_MODEL_KEY' },
      keyless: { baseURL: guarded.baseURL, model: 'text', apiKeyEnv: 'TEST_NO_KEY' },
      nowhere: { baseURL: baseURL.replace('/v1', '/v2'), model: 'text' },
      hangs: { baseURL, model: 'hang' },
      good: { baseURL, model: 'text' },
    })
    const env = { ...options.env, TEST_MODEL_KEY: 'sk-another-secret-99' }
    const ended = await manyworlds(['models', '--json', '--timeout', '6s'], { ...options, env })
    expect(ended.code, ended.stderr).toBe(1)
    const rows = JSON.parse(ended.stdout) as { name: string; ok: boolean; code?: string; problem?: string }[]
    expect(rows.map(({ name, ok, code }) => [name, ok, code])).toEqual([
      ['down', false, 'MODEL_TRANSIENT'],
      ['good', true, undefined],
      ['hangs', false, 'MODEL_TIMEOUT'],
      ['keyless', false, 'CONFIG_INVALID'],
      ['nowhere', false, 'MODEL_INVALID_REQUEST'],
      ['wrong', false, 'MODEL_AUTHENTICATION'],
    ])
    const problem = (name: string) => rows.find((row) => row.name === name)!.problem
    expect(problem('down')).toMatch(/ECONNREFUSED.*is the server running, and is its `baseURL` right\?$/)
    expect(problem('wrong')).toContain('check the API key in TEST_MODEL_KEY')
    expect(problem('keyless')).toContain('needs the environment variable TEST_NO_KEY')
    expect(problem('nowhere')).toContain('does its `baseURL` end with the version')
    expect(problem('hangs')).toContain('no answer within 6.0 s')
    expect(ended.stdout).not.toMatch(/planted|another-secret/)
    const table = await manyworlds(['models', 'good', 'down'], { ...options, env })
    expect(table.code).toBe(1)
    expect(table.stdout).toMatch(
      /^good {2}.*\ndown {2}model 'down': ECONNREFUSED.* \(text at http:\/\/127\.0\.0\.1:1\/v1\).* \[MODEL_TRANSIENT\]$/m,
    )
  })

  it('asks by another name for few tokens, if the server refuses max_tokens', async () => {
    const { createServer } = await import('node:http')
    const bodies: string[] = []
    const picky = createServer(async (request, response) => {
      const body = Buffer.concat(await request.toArray()).toString()
      bodies.push(body)
      const refused = body.includes('"max_tokens"')
      response.writeHead(refused ? 400 : 200, { 'content-type': 'application/json' })
      const answer = { choices: [{ message: { content: 'ok' }, finish_reason: 'stop' }] }
      response.end(JSON.stringify(refused ? { error: { message: "Unsupported parameter: 'max_tokens'" } } : answer))
    }).listen(0, '127.0.0.1')
    await new Promise((resolve) => picky.once('listening', resolve))
    const { port } = picky.address() as { port: number }
    const { options } = project({})
    const ended = await manyworlds(['models', '--json', '--model', `new=http://127.0.0.1:${port}/v1#o9`], options)
    picky.close()
    expect(ended.code, ended.stderr + ended.stdout).toBe(0)
    expect(JSON.parse(ended.stdout)).toMatchObject([{ name: 'new', model: 'o9', usage: false, toolCalls: false }])
    expect(bodies.map((body) => body.includes('max_completion_tokens'))).toEqual([false, true, true, true, true])
  })

  it('knows models of the command line and of another file', async () => {
    const { baseURL } = server
    const { options } = folder(
      { small: { baseURL, model: 'text' } },
      { 'more.json': JSON.stringify({ big: { baseURL, model: 'json' } }) },
    )
    const names = async (...words: string[]) => {
      const ended = await manyworlds(['models', '--json', ...words], options)
      return (JSON.parse(ended.stdout) as { name: string; model: string }[]).map(({ name, model }) => [name, model])
    }
    expect(await names('--models', 'more.json')).toEqual([['big', 'json']])
    expect(await names('--model', `a=${baseURL}#text:2`, '--model', 'b=small', '--model', 'c=a')).toEqual([
      ['a', 'text:2'],
      ['b', 'text'],
      ['c', 'text:2'],
      ['small', 'text'],
    ])
  })

  it('says how to configure one, if there is none, and which there are, if a name is mistyped', async () => {
    const none = await manyworlds(['models'], project({}).options)
    expect(none).toMatchObject({ code: 2, stdout: '' })
    expect(none.stderr).toMatch(
      /no models are configured\. Write a models\.json .*"baseURL": .*manyworlds models --model small=/s,
    )
    const { options } = folder({ small: { baseURL: server.baseURL, model: 'text' } })
    const mistyped = await manyworlds(['models', 'smal'], options)
    expect(mistyped.code).toBe(2)
    expect(mistyped.stderr).toContain('unknown model "smal"; models: small; did you mean "small"?')
  })
})

const SCRIPT = `
import { defineAgent, Runners } from 'manyworlds'
const ask = defineAgent({
  name: 'ask',
  run: async (model: string, ctx) => (await ctx.generate({ model, prompt: 'hello' })).text.split(' ').length,
})
const [models, count = '1'] = process.argv.slice(2)
const results = await Runners.runTask(
  Array.from({ length: Number(count) }, (_, n) => ask.task('small', { id: 't' + n })),
  { workerNum: 1, ...JSON.parse(models) },
)
console.log(JSON.stringify([...results.values()].map(({ answer, error }) => answer ?? error.message)))
`

describe('manyworlds run', () => {
  const run = async (file: object, code: object, words: readonly string[]) => {
    const { options } = folder(file, {
      'ask.ts': SCRIPT,
      'other.json': JSON.stringify({ small: { baseURL: server.baseURL, model: 'text:9' } }),
    })
    return manyworlds(['run', 'ask.ts', '-q', '--no-store', ...words, '--', JSON.stringify(code)], options)
  }
  const words = (count: number) => ({ baseURL: server.baseURL, model: `text:${count}` })

  it('takes a model from --model, before the code, before models.json', async () => {
    const file = { small: words(2), big: words(3) }
    const code = { models: { small: words(4), mine: words(5) } }
    const answer = async (...typed: string[]) => printed(await run(file, code, typed))
    expect(await answer()).toEqual([[4]])
    expect(await answer('--model', 'small=big')).toEqual([[3]])
    expect(await answer('--model', 'small=mine')).toEqual([[5]])
    expect(await answer('--model', `small=${server.baseURL}#text:6`)).toEqual([[6]])
    expect(await answer('--model', `small=${JSON.stringify(words(7))}`)).toEqual([[7]])
    expect(await answer('--model', 'small=x', '--model', `x=${server.baseURL}#text:8`)).toEqual([[8]])
    expect(printed(await run(file, {}, []))).toEqual([[2]])
    expect(printed(await run(file, {}, ['--models', 'other.json']))).toEqual([[9]])
  })

  it('refuses a model that is not there, before anything starts', async () => {
    const refused = await run({ small: words(2), keyed: { ...words(1), apiKeyEnv: 'TEST_NO_KEY' } }, {}, [
      '--model',
      'small=smlal',
    ])
    expect(refused).toMatchObject({ code: 2, stdout: '' })
    expect(refused.stderr).toContain(
      `--model small=smlal: unknown model 'smlal'; the run and its models file have small; did you mean "small"? [CONFIG_INVALID]`,
    )
    const keyless = await run({ keyed: { ...words(1), apiKeyEnv: 'TEST_NO_KEY' } }, {}, ['--model', 'small=keyed'])
    expect(keyless.stderr).toContain(
      "model 'keyed' needs the environment variable TEST_NO_KEY, which is not set or empty",
    )
    const file = await run({}, {}, ['--models', 'no.json'])
    expect(file).toMatchObject({ code: 2, stdout: '' })
    expect(file.stderr).toContain('no.json: file not found (ENOENT) [CONFIG_INVALID]')
    const json = await run({}, {}, ['--model', 'small={"model":"x"}'])
    expect(json.stderr).toContain('--model: `small.baseURL` must be a string, it is undefined [CONFIG_INVALID]')
  })

  it.each(['await Runners.runTask', 'Runners.syncRunTask'])('shows no key of models.json: %s', async (call) => {
    const { options } = folder(
      { keyed: { ...words(1), apiKeyEnv: 'TEST_MODEL_KEY' } },
      {
        'leak.ts': `
import { defineAgent, Runners } from 'manyworlds'
const leak = defineAgent({ name: 'leak', run: () => [process.env.TEST_MODEL_KEY ?? 'withheld', '${KEY.slice(0, 9)}' + '${KEY.slice(9)}'] })
const responses = ${call}([leak.task(undefined, { id: 'a' })], { workerNum: 1 })
console.log(responses.get('a').answer.length)`,
      },
    )
    const env = { ...options.env, TEST_MODEL_KEY: KEY }
    const ended = await manyworlds(['run', 'leak.ts', '--json', '--no-store'], { ...options, env })
    expect(ended.code, ended.stderr).toBe(0)
    expect(ended.stdout).toContain('"answer":["withheld","[redacted]"]')
    expect(ended.stdout + ended.stderr).not.toContain(KEY)
  })

  it('says for which model calls wait, how long tasks waited, and what the models were asked', async () => {
    const { options } = folder({ small: { ...words(2), requestsPerMinute: 300 } }, { 'ask.ts': SCRIPT })
    const ended = await manyworlds(['run', 'ask.ts', '--json', '--run-id', 'paced', '--', '{}', '20'], options)
    expect(ended.code, ended.stderr).toBe(0)
    const lines = printed(ended) as { type: string; waiting?: { model: string; queued: number }[]; waitedMs?: number }[]
    const queues = lines.flatMap(({ type, waiting }) => (type === 'progress' ? (waiting ?? []) : []))
    expect(queues.length).toBeGreaterThan(0)
    for (const { model, queued } of queues) {
      expect(model).toBe('small')
      expect(queued).toBeGreaterThan(0)
      expect(queued).toBeLessThanOrEqual(20)
    }
    const summary = lines.find(({ type }) => type === 'summary')!
    expect(summary).toMatchObject({ models: [{ model: 'small', calls: 20, rateLimited: 0, failed: 0 }] })
    expect(summary.waitedMs).toBeGreaterThan(5000)
    const shown = await manyworlds(['show', 'paced'], options)
    expect(shown.stdout).toMatch(/^waited {5}[\d.:]+ (s|min) in all, [\d.]+ m?s a task; timeouts do not count it$/m)
    const task = await manyworlds(['show', 'paced', 't19'], options)
    expect(task.stdout).toMatch(/^time {7}queued .*, ran .*, of which it waited [\d.]+ m?s$/m)
  })
})
