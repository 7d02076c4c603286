import { execFile } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { Runners } from '../../dist/index.js'
import { RunFile } from '../../dist/store/index.js'
import { openForReading } from '../../dist/store/open-for-reading.js'
import { leaky } from '../agents/models.ts'
import { MAIN } from '../cli/manyworlds.ts'
import { type ModelServer, startModelServer } from './scripted-server.ts'

const KEY = 'sk-test-4f9a0c7be21d4b5a'
const HEADER = 'gateway-secret-77aa31'
const FIELD = 'upstream-secret-5d0e19'

let server: ModelServer
let store: string
beforeAll(async () => {
  server = await startModelServer({ seed: 5, apiKey: KEY })
  store = mkdtempSync(join(tmpdir(), 'mw-keys-'))
  process.env.MW_TEST_KEY = KEY
})
afterAll(async () => {
  delete process.env.MW_TEST_KEY
  await Runners.shutdown()
  await server.close()
  rmSync(store, { recursive: true, force: true })
})

test('keys reach the server, and nothing that is kept or shown', { timeout: 120_000 }, async () => {
  const lines: string[] = []
  const written = vi.spyOn(process.stderr, 'write').mockImplementation((line) => lines.push(String(line)) > 0)
  const responses = await Runners.runTask(
    ['message', 'tool', 'error', 'print', 'header', 'environment'].map((where) =>
      leaky.task({ where, secret: `${KEY} ${HEADER}` }, { id: where }),
    ),
    {
      ...{ store, runId: 'leaky', workerNum: 2 },
      models: {
        m: {
          ...{ baseURL: server.baseURL, model: 'echo', apiKeyEnv: 'MW_TEST_KEY' },
          headers: { 'x-gateway-key': HEADER, 'x-team': 'blue' },
          extraBody: { top_k: 20, upstream: { api_key: FIELD, tokenizer: 'qwen/qwen3' } },
        },
      },
    },
  ).finally(() => written.mockRestore())
  expect(lines.join('')).toContain('6 model answers were not stored')
  const [request] = await server.requests({ path: '/v1/chat/completions' })
  expect(request!.headers).toMatchObject({ authorization: `Bearer ${KEY}`, 'x-gateway-key': HEADER, 'x-team': 'blue' })
  expect(JSON.parse(request!.body)).toMatchObject({ top_k: 20, upstream: { api_key: FIELD } })
  // A step without other secrets is not marked as redacted: its tokens may be trained on.
  const plain = responses.get('header')!.trajectory.find((step) => step.kind === 'model')!
  expect(plain).toMatchObject({ sampling: { other: { upstream: { tokenizer: 'qwen/qwen3', api_key: '[redacted]' } } } })
  expect(plain).not.toHaveProperty('redacted')
  // Workers have neither the variable nor its value.
  expect(responses.get('environment')!.answer).toBe('no variable')
  const message = responses.get('message')!
  expect(message.trajectory.find((step) => step.kind === 'model')).toMatchObject({ redacted: true, tokens: null })
  expect(responses.get('error')!.error!.message).toContain('[redacted]')

  for (const text of [
    ...(await shown()),
    ...stored(),
    JSON.stringify([...responses.values()].map(({ trajectory, error, logs }) => [trajectory, error, logs])),
  ]) {
    expect(text.includes(KEY), text.slice(0, 200)).toBe(false)
    expect(text.includes(HEADER), text.slice(0, 200)).toBe(false)
    expect(text.includes(FIELD), text.slice(0, 200)).toBe(false)
  }
})

/** What the command line prints of the run. */
async function shown(): Promise<string[]> {
  const show = async (...words: string[]) => {
    const { stdout, stderr } = await promisify(execFile)(process.execPath, [MAIN, ...words], {
      cwd: store,
      maxBuffer: 1 << 26,
    })
    return stdout + stderr
  }
  const where = ['--dir', store]
  return [
    await show('show', 'leaky', ...where),
    await show('show', 'leaky', 'message', ...where, '--full'),
    await show('show', 'leaky', 'error', ...where),
    await show('show', 'leaky', 'print', ...where, '--json'),
  ]
}

/** All that is in the store: every row as its readers see it, and the bytes of its files. */
function stored(): string[] {
  const rows = RunFile.open('leaky', { store })
  const texts = [...rows.responses()].map((response) => JSON.stringify(response))
  using db = openForReading(join(store, 'store.sqlite'))
  for (const { name } of db.prepare("SELECT name FROM sqlite_schema WHERE type IN ('table', 'view')").all() as {
    name: string
  }[])
    texts.push(JSON.stringify(db.prepare(`SELECT * FROM "${name}"`).all()))
  for (const file of readdirSync(store, { recursive: true, withFileTypes: true }))
    if (file.isFile()) texts.push(readFileSync(join(file.parentPath, file.name), 'latin1'))
  return texts
}
