import { readFileSync, writeFileSync } from 'node:fs'
import { request as httpsRequest } from 'node:https'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { RunFile } from '../../dist/store/index.js'
import { manyworlds, newFolder } from '../cli/manyworlds.ts'
import { project } from '../cli/project.ts'
import { type ModelServer, startModelServer } from '../models/scripted-server.ts'
import { makeAuthority } from '../nodes/certificates.ts'
import { AGENTS, startRolloutServer, TOKEN } from './server.ts'

let models: ModelServer
beforeAll(async () => {
  models = await startModelServer({ seed: 3, dialect: 'vllm' })
})
afterAll(() => models.close())

const modelOf = (model: string) => ({ baseURL: models.baseURL, model, logprobs: 'processed' })

it('a file that makes a run when it is imported is not served, and its run is not made', async () => {
  const { options } = project({
    'agent.ts': `import { defineAgent, Runners } from 'manyworlds'
      export const agent = defineAgent({ name: 'a', run: async (n: number) => n })
      await Runners.runTask(agent.task(1))`,
  })
  const { code, stderr } = await manyworlds(['rollout-server', 'agent.ts', '--port', '0'], options)
  expect(stderr).toMatch(/^manyworlds: agent\.ts makes a run .* module of their own.*\n.* help rollout-server.*\n$/)
  expect(code).toBe(2)
  expect((await manyworlds(['runs'], options)).stdout).toBe('')
})

describe('who may call, and with what', () => {
  it('refuses strangers and requests that make no sense, each with a code', async () => {
    const { ask, url } = await startRolloutServer('--max-body', '1')
    const call = async (path: string, init: RequestInit) => {
      const response = await fetch(`${url}${path}`, init)
      return { status: response.status, ...((await response.json()) as object) }
    }
    expect(await call('/health', {})).toEqual({ status: 200, ok: true })
    const bearer = { authorization: `Bearer ${TOKEN}` }
    const unauthorized = { status: 401, error: { code: 'UNAUTHORIZED' } }
    expect(await call('/v1/rollouts', { method: 'POST', body: '{}' })).toMatchObject(unauthorized)
    const wrong = { authorization: `Bearer ${TOKEN}x` }
    expect(await call('/v1/rollouts', { method: 'POST', headers: wrong })).toMatchObject(unauthorized)
    expect(await call('/v1/rollouts', { headers: bearer })).toMatchObject({ status: 405 })
    expect(await call('/v2', { headers: bearer })).toMatchObject({ status: 404, error: { code: 'NOT_FOUND' } })
    const browser = { ...bearer, origin: 'https://example.com' }
    expect(await call('/v1/rollouts', { method: 'POST', headers: browser })).toMatchObject({ status: 403 })

    const tasks = [{ input: 'x' }]
    for (const [body, message] of [
      ['{', 'not valid JSON'],
      ['[]', 'must be an object'],
      [{}, '`tasks` must be an array'],
      [{ tasks: [] }, '`tasks` must have at least 1 element, it has none'],
      [{ tasks: [{}] }, '`tasks.0` has no `input`'],
      [{ tasks, rollout: 2 }, "did you mean 'rollouts'"],
      [{ tasks, rollouts: 0 }, '`rollouts` must be at least 1'],
      [{ tasks: [{ input: 'x', truth: 1 }] }, "unknown key 'tasks.0.truth'"],
      [{ tasks, model: { model: 'm' } }, '`model.baseURL`'],
      [{ tasks, sampling: { top_p: 1 } }, '`sampling` requires `model`'],
    ] as const)
      expect(await ask(body)).toMatchObject({
        ...{ status: 400, error: { code: 'BAD_REQUEST', message: expect.stringContaining(message) } },
      })
    const twice = await ask({
      tasks: [
        { id: 'a', input: 1 },
        { id: 'a', input: 2 },
      ],
      model: modelOf('text'),
    })
    expect(twice).toMatchObject({ status: 400, error: { code: 'TASK_DUPLICATE_ID' } })
    const nowhere = await ask({ tasks, model: { baseURL: 'nowhere', model: 'm' } })
    expect(nowhere).toMatchObject({ status: 400, error: { code: 'CONFIG_INVALID' } })
    const large = await ask({ tasks: [{ input: 'x'.repeat(3_000_000) }] })
    expect(large).toMatchObject({ status: 413, error: { code: 'BODY_TOO_LARGE' } })
    // 40 kB that ask for eight million rollouts.
    const many = await ask({ tasks: Array.from({ length: 2000 }, () => ({ input: 'x' })), rollouts: 4096 })
    expect(many).toMatchObject({ status: 413, error: { code: 'TOO_MANY_ROLLOUTS' } })
    expect(many.error!.message).toBe(
      '2000 tasks with 4096 rollouts each are 8192000 rollouts, but the limit is 32768 (--max-rollouts); send several requests, or raise the limit',
    )
    // And after all that it still works.
    expect(await ask({ tasks, model: modelOf('text') })).toMatchObject({ status: 200 })
  })

  it('listens beyond this machine only with a token and TLS', async () => {
    const folder = newFolder()
    const token = join(folder, 'token.txt')
    writeFileSync(token, TOKEN, { mode: 0o600 })
    const start = (...words: string[]) =>
      manyworlds(['rollout-server', AGENTS, '--host', '0.0.0.0', '--port', '0', ...words], { cwd: folder })
    expect(await start()).toMatchObject({ code: 2, stderr: expect.stringContaining('without a token') })
    expect(await start('--token-file', token)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('without TLS'),
    })
    writeFileSync(join(folder, 'empty.mjs'), 'export const x = 1')
    const none = await manyworlds(['rollout-server', 'empty.mjs', '--port', '0'], { cwd: folder })
    expect(none).toMatchObject({ code: 2, stderr: expect.stringContaining('exports no agent') })
  })

  it('speaks HTTPS with a certificate', async () => {
    const authority = await makeAuthority(newFolder(), 'authority')
    const { cert, key } = await authority.sign('127.0.0.1')
    const { url } = await startRolloutServer('--tls-cert', cert, '--tls-key', key)
    expect(url).toMatch(/^https:/)
    const status = await new Promise((resolve, reject) => {
      const headers = { authorization: `Bearer ${TOKEN}` }
      httpsRequest(`${url}/health`, { ca: readFileSync(authority.path), headers }, ({ statusCode }) =>
        resolve(statusCode),
      )
        .on('error', reject)
        .end()
    })
    expect(status).toBe(200)
  })
})

describe('when a caller goes, or the server is stopped', () => {
  const running = (model: string) =>
    expect.poll(async () => (await models.requests({ model })).length, { timeout: 30_000 }).toBeGreaterThan(0)

  it('refuses rollouts beyond its limit while others run, and takes them afterwards', async () => {
    const { ask } = await startRolloutServer('--max-rollouts', '3')
    const model = 'latency:61000+text'
    const gone = new AbortController()
    const asked = ask({ tasks: [{ input: 'x' }], rollouts: 2, model: modelOf(model) }, { signal: gone.signal })
    await running(model)
    const next = { tasks: [{ input: 'x' }, { input: 'y' }], model: modelOf('text') }
    expect(await ask(next)).toMatchObject({
      status: 503,
      error: { code: 'BUSY', message: expect.stringContaining('other requests have 2, but the limit is 3 at once') },
    })
    gone.abort()
    await expect(asked).rejects.toThrow()
    await expect.poll(async () => (await ask(next)).status).toBe(200)
  })

  it('cancels the rollouts of a caller that went away, and takes the next one', async () => {
    const server = await startRolloutServer('--max-requests', '1')
    const model = 'latency:60000+text'
    const gone = new AbortController()
    const asked = server.ask({ tasks: [{ input: 'x' }], rollouts: 2, model: modelOf(model) }, { signal: gone.signal })
    await running(model)
    const busy = await server.ask({ tasks: [{ input: 'x' }], model: modelOf('text') })
    expect(busy).toMatchObject({ status: 503, error: { code: 'BUSY' } })
    gone.abort()
    await expect(asked).rejects.toThrow()
    await expect.poll(server.output).toContain('cancelled, because the caller disconnected')
    const [runId] = RunFile.list({ store: server.store })
    using run = RunFile.open(runId!, { store: server.store })
    expect([...run.responses()].map(({ status }) => status)).toEqual(['cancelled', 'cancelled'])
    expect(await server.ask({ tasks: [{ input: 'x' }], model: modelOf('text') })).toMatchObject({ status: 200 })
  })

  it('lets rollouts finish after Ctrl-C, and then ends with all its workers', async () => {
    const server = await startRolloutServer('--grace', '40s')
    // It takes from 2 to 6 s: this test may be late with its signal.
    const model = 'latency:4000+text'
    const asked = server.ask({ tasks: [{ input: 'x' }], model: modelOf(model) })
    await running(model)
    server.child.kill('SIGINT')
    expect(await asked).toMatchObject({ status: 200, groups: [{ rollouts: [{ refused: null }] }] })
    expect(await server.exited).toBe(0)
    expect(server.output()).toContain('no more requests are accepted; 1 rollout may continue for 40 s')
  })

  it('tells a caller that waits too long, and ends', async () => {
    const server = await startRolloutServer('--grace', '500ms')
    const model = 'latency:59000+text'
    const asked = server.ask({ tasks: [{ input: 'x' }], model: modelOf(model) })
    await running(model)
    server.child.kill('SIGTERM')
    expect(await asked).toMatchObject({ status: 503, error: { code: 'STOPPED' } })
    expect(await server.exited).toBe(0)
  })
})
