import type { ChildProcess } from 'node:child_process'
import { createServer, type Server } from 'node:http'
import type { Server as TcpServer } from 'node:net'
import { type ActionStep, Runners, type TaskResponse } from 'manyworlds'
import { openEnv } from 'manyworlds/agents'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { type WebSocket, WebSocketServer } from 'ws'
import { counter, cutCounter } from '../agents/python-worlds.ts'
import { freePort } from '../support/free-port.ts'
import { begin } from './episode.ts'
import { type Fate, openEnvPython, openProxy, READY_MS, startCounting } from './openenv-server.ts'

const found = await openEnvPython()

describe.skipIf('problem' in found)('a real OpenEnv server', () => {
  const SESSIONS = 32
  let url: string
  let child: ChildProcess
  const proxies: TcpServer[] = []
  beforeAll(async () => {
    ;({ url, child } = await startCounting((found as { python: string }).python, SESSIONS))
  }, READY_MS + 10_000)
  afterAll(async () => {
    await Runners.shutdown()
    for (const proxy of proxies) proxy.close()
    child?.kill('SIGKILL')
  })

  const steps = ({ trajectory }: TaskResponse) => trajectory as readonly ActionStep[]
  interface Seen {
    readonly total: number
    readonly drawn: number
    readonly sessions: number
  }

  test('serves 32 episodes at once; others wait until there is room', async () => {
    const tasks = Array.from({ length: 48 }, (_, at) =>
      counter.task({ seed: at % 24, numbers: [1, 2], peak: SESSIONS, options: { goal: 9 } }),
    )
    const config = { workerNum: 2, concurrency: 24, env: { OPENENV_URL: url } }
    const responses = [...(await Runners.runTask(tasks, config)).values()]
    expect(responses.filter(({ status }) => status !== 'success')).toEqual([])
    const seen = responses.map((response) => steps(response).map(({ observation }) => observation as Seen))
    for (const [at, response] of responses.entries()) {
      expect(steps(response).map(({ reward }) => reward)).toEqual([1, 2, 1, 2, 1, 2])
      expect(response.episode).toMatchObject({ ending: { kind: 'unknown' }, reward: 9, success: null })
      expect(seen[at]!.map(({ total }) => total)).toEqual([0, 1, 3, 4, 6, 7])
      // The seed of the task has reached the environment, and its environment is its own.
      expect(seen[at]!.map(({ drawn }) => drawn)).toEqual(seen[at % 24]!.map(({ drawn }) => drawn))
    }
    expect(new Set(seen.map(([first]) => first!.drawn)).size).toBe(24)
    const most = Math.max(...seen.flat().map(({ sessions }) => sessions))
    expect(most).toBeGreaterThanOrEqual(SESSIONS)
    // The server counts one that has ended until it has closed its environment. 48 would like to be served.
    expect(most).toBeLessThan(SESSIONS + 8)
  })

  test('connections that are cut cost an attempt, and no more; a server that hangs is not waited for', async () => {
    const fates: Fate[] = ['cut', 'pass', 'stall', 'pass', 'cut']
    const proxy = await openProxy(url, (connection) => fates[connection] ?? 'pass')
    proxies.push(proxy.server)
    const tasks = Array.from({ length: 10 }, (_, seed) => cutCounter.task({ seed, numbers: [1], options: { goal: 8 } }))
    const config = { workerNum: 1, env: { CUT_OPENENV_URL: proxy.url } }
    const retried = [...(await Runners.runTask(tasks, { ...config, maxAttempts: 4 })).values()]
    expect(retried.filter(({ status }) => status !== 'success')).toEqual([])
    expect(retried.reduce((sum, { attempts }) => sum + attempts, 0)).toBe(13)
    expect(proxy.connections()).toBe(13)
    fates.splice(0, 5, ...Array<Fate>(13).fill('pass'), 'cut', 'stall')
    const responses = [...(await Runners.runTask(tasks, config)).values()]
    const bad = responses.filter(({ status }) => status !== 'success')
    expect(bad.map(({ error }) => [error?.code, error?.message]).sort()).toEqual([
      [
        'WORLD_DISCONNECTED',
        expect.stringMatching(/was lost during step 2: the server closed it with code 1006\. .*maxAttempts/),
      ],
      ['WORLD_TIMEOUT', expect.stringMatching(/^step 2 in .* took longer than callTimeoutMs \(6000 ms\)$/)],
    ])
  })

  test('says what it does not know: whether an episode came to its end', async () => {
    const world = openEnv<Seen, { number: number }>({ url })
    const episode = await begin(world, { seed: 1, options: { goal: 3 } })
    expect(await episode.step({ number: 2 })).toEqual({
      observation: expect.objectContaining({ total: 2 }),
      reward: 2,
      done: false,
    })
    expect(await episode.step({ number: 2 })).toMatchObject({ reward: 2, done: true, truncated: 'unknown' })
    episode.close()
  })

  test('what it refuses and what fails there is told apart, and the episode goes on', async () => {
    const world = openEnv<Seen, object>({ url })
    const episode = await begin(world, undefined)
    const wrong: [action: unknown, code: string, message: string][] = [
      [{ numbr: 1 }, 'ACTION_INVALID', 'step 0 in the OpenEnv environment at ws://127.0.0.1:'],
      [{ numbr: 1 }, 'ACTION_INVALID', '[VALIDATION_ERROR]: [{"type":"missing","loc":["number"]'],
      ['up', 'ACTION_INVALID', "must be an object with the fields of the server's /schema, it is 'up'"],
      [{ number: 13 }, 'WORLD_FAILED', 'raised an error: thirteen is bad luck [EXECUTION_ERROR]'],
    ]
    for (const [action, code, message] of wrong)
      await expect(episode.step(action as object)).rejects.toMatchObject({
        code,
        message: expect.stringContaining(message),
      })
    expect(await episode.step({ number: 1 })).toMatchObject({ observation: { total: 1 } })
    episode.close()
  })

  test('closes the environment with the episode', async () => {
    const world = openEnv<Seen, object>({ url })
    const sessions = async () => {
      const episode = await begin(world, undefined)
      episode.close()
      return (episode.first.observation as Seen).sessions
    }
    await expect.poll(sessions).toBe(1)
  })
})

describe('a server that', () => {
  const servers: (WebSocketServer | Server)[] = []
  afterEach(() => {
    for (const server of servers.splice(0)) server.close()
  })

  /** `behave` has each connection, and the number of it. */
  async function serve(behave: (socket: WebSocket, connection: number) => void): Promise<string> {
    const server = new WebSocketServer({ port: 0, host: '127.0.0.1', path: '/ws' })
    servers.push(server)
    let connections = 0
    server.on('connection', (socket) => behave(socket, connections++))
    await new Promise<void>((resolve) => server.once('listening', () => resolve()))
    return `http://127.0.0.1:${(server.address() as { port: number }).port}`
  }

  const answer = (socket: WebSocket, text: string) => socket.on('message', () => socket.send(text))
  const FULL = '{"type":"error","data":{"code":"CAPACITY_REACHED","message":"Server at capacity: 1/1 sessions active"}}'
  const FIRST = '{"type":"observation","data":{"observation":{"n":1},"reward":null,"done":false}}'

  test('is full is waited for, for as long as it was said', async () => {
    const url = await serve((socket, connection) => {
      if (connection >= 3) answer(socket, FIRST)
      else {
        socket.send(FULL)
        socket.close(1000)
      }
    })
    const episode = await begin(openEnv({ url }), undefined)
    expect(episode.first.observation).toEqual({ n: 1 })
    episode.close()
    const full = await serve((socket) => {
      socket.send(FULL)
      socket.close(1000)
    })
    const began = performance.now()
    await expect(begin(openEnv({ url: full, capacityWaitMs: 1000 }), undefined)).rejects.toMatchObject({
      code: 'WORLD_UNAVAILABLE',
      message: expect.stringMatching(
        /had no capacity for another session within 1000 ms: Server at capacity.*SUPPORTS_CONCURRENT_SESSIONS/,
      ),
    })
    // By default, it would be a minute.
    expect(performance.now() - began).toBeLessThan(30_000)
  })

  test('cannot make an environment says so, whenever it says it', async () => {
    const url = await serve((socket) => {
      socket.send('{"type":"error","data":{"code":"FACTORY_ERROR","message":"no such file"}}')
      socket.close(1000)
    })
    await expect(begin(openEnv({ url }), undefined)).rejects.toMatchObject({
      code: 'WORLD_UNAVAILABLE',
      message: expect.stringContaining('the server cannot create an environment for reset'),
    })
  })

  test.each([
    ['no JSON', 'hello', 'returned something other than an OpenEnv message: hello'],
    ['no object', '[]', 'returned no observation: []'],
    ['null', 'null', 'returned something other than an OpenEnv message: null'],
    ['a text as its reward', FIRST.replace('null', '"much"'), 'returned no observation'],
    ['no `done`', FIRST.replace('"done":false', '"done":null'), 'returned no observation'],
    ['another message', FIRST.replace('"observation",', '"state",'), 'returned no observation'],
    ['an unknown error', '{"type":"error","data":{"code":"NEW","message":"what?"}}', 'failed: what? [NEW]'],
  ])('answers with %s fails that episode', async (_, text, message) => {
    const url = await serve((socket) => answer(socket, text.replace('[]', '{"type":"x","data":[]}')))
    await expect(begin(openEnv({ url }), undefined)).rejects.toMatchObject({
      code: 'WORLD_FAILED',
      message: expect.stringContaining(message.replace('[]', '{"type":"x","data":[]}')),
    })
  })

  test('is not there, is no OpenEnv server, or wants a key is told apart', async () => {
    const begun = (url: string) => begin(openEnv({ url: `${url}?key=secret`, callTimeoutMs: 20_000 }), undefined)
    const gone = `http://127.0.0.1:${await freePort()}`
    await expect(begun(gone)).rejects.toMatchObject({
      code: 'WORLD_UNAVAILABLE',
      message: expect.stringMatching(
        /^cannot connect to the OpenEnv server at ws:\/\/127.0.0.1:\d+\/ws: connect ECONNREFUSED/,
      ),
    })
    let status = 404
    const plain = createServer((_, response) => response.writeHead(status).end('?'))
    servers.push(plain)
    plain.on('upgrade', (_, socket) => socket.end(`HTTP/1.1 ${status} No\r\n\r\n`))
    await new Promise<void>((resolve) => plain.listen(0, '127.0.0.1', resolve))
    const url = `http://127.0.0.1:${(plain.address() as { port: number }).port}`
    await expect(begun(url)).rejects.toThrow(
      'it answered with HTTP 404; check that this is the address of an OpenEnv server',
    )
    status = 403
    await expect(begun(url)).rejects.toThrow('it answered with HTTP 403; give its credentials in `headers`')
  })

  test('accepts connections and never says a word is given up', async () => {
    const url = await serve(() => {})
    await expect(begin(openEnv({ url, callTimeoutMs: 300 }), undefined)).rejects.toMatchObject({
      code: 'WORLD_TIMEOUT',
      message: expect.stringMatching(
        /^reset in the OpenEnv environment at .* took longer than callTimeoutMs \(300 ms\)$/,
      ),
    })
  })
})
