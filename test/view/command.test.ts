import { lookup } from 'node:dns/promises'
import { once } from 'node:events'
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage } from 'node:http'
import { request as httpsRequest } from 'node:https'
import type { AddressInfo } from 'node:net'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { text } from 'node:stream/consumers'
import { Runners } from 'manyworlds'
import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import { shown } from '../agents/viewed.ts'
import { inBackground } from '../cli/background.ts'
import { MAIN, manyworlds, newFolder, programs } from '../cli/manyworlds.ts'
import { makeAuthority } from '../nodes/certificates.ts'
import { noTerminals, openTerminal } from '../terminal/terminal.ts'

afterAll(() => Runners.shutdown())

const URL_LINE = /^(https?:\/\/\S+\/\?token=(\S+))$/m

/** Starts the command, and waits for its address. */
async function viewing(words: readonly string[], cwd: string) {
  const command = inBackground(['view', '--no-open', ...words], { cwd, env: { MANYWORLDS_STORE: '' } })
  await expect.poll(() => command.output(), { timeout: 50_000 }).toMatch(URL_LINE)
  const [, url, token] = URL_LINE.exec(command.stdout())!
  const start = async (): Promise<unknown> => {
    const response = await fetch(new URL('/api/start', url), { headers: { authorization: `Bearer ${token}` } })
    return await response.json()
  }
  return { ...command, url: url!, token: token!, start }
}

async function stored(cwd: string) {
  const store = join(cwd, '.manyworlds/runs')
  for (const runId of ['first', 'second'])
    await Runners.runTask([shown.task({ text: runId }, { id: 'a' })], { store, runId, workerNum: 1 })
  const file = join(cwd, 'sent.sqlite')
  await Runners.runTask([shown.task({ text: 'x' }, { id: 'a' })], { store: file, runId: 'sent', workerNum: 1 })
  return { store, file }
}

describe('manyworlds view', () => {
  it.each(['SIGINT', 'SIGTERM'] as const)('prints its address, and ends with %s', async (signal) => {
    const { start, child, exited, url } = await viewing(['--port', '0'], newFolder())
    expect(await start()).toMatchObject({ route: '#/', place: expect.stringContaining('.manyworlds/runs') })
    expect(new URL(url).hostname).toBe('127.0.0.1')
    child.kill(signal)
    expect(await exited).toBe(0)
  })

  it.skipIf(process.platform !== 'linux' || noTerminals())('opens a browser without telling it the token', async () => {
    const cwd = newFolder()
    const opened = join(cwd, 'opened')
    const bin = programs({ 'xdg-open': `echo "$@" > '${opened}'` })
    const env = { PATH: `${bin}:/usr/bin:/bin`, DISPLAY: ':0', MANYWORLDS_STORE: '' }
    const terminal = openTerminal(process.execPath, [MAIN, 'view', '--port', '0'], { cwd, env })
    await terminal.waitFor(/\?token=/)
    await expect.poll(() => existsSync(opened) && readFileSync(opened, 'utf8'), { timeout: 20_000 }).toMatch(/\n$/)
    const url = readFileSync(opened, 'utf8').trim()
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/\?code=[\w-]{20,}$/)
    expect((await fetch(url)).status).toBe(200)
    expect((await fetch(url)).status).toBe(401)
    terminal.ctrlC()
    expect(await terminal.exit).toBe(0)
  })

  it('shows a run, the newest one, a file, or a folder', async () => {
    const cwd = newFolder()
    const { store } = await stored(cwd)
    const ways: readonly (readonly [string[], object])[] = [
      [['first'], { route: '#/run/first', place: store }],
      [['last'], { route: '#/run/second', place: store }],
      [['sec'], { route: '#/run/second' }],
      [['sent.sqlite'], { route: '#/run/sent', place: join(cwd, 'sent.sqlite') }],
      [['.manyworlds/runs'], { route: '#/', place: store }],
      [[join(store, 'store.sqlite')], { route: '#/', place: store }],
      [['--dir', store, 'first'], { route: '#/run/first' }],
    ]
    for (const [words, expected] of ways) {
      const { start, child } = await viewing([...words, '--port', '0'], cwd)
      expect(await start(), words.join(' ')).toMatchObject(expected)
      child.kill('SIGKILL')
    }
  })

  it('takes a free port if the usual one is taken, but not if it was asked for', async () => {
    const cwd = newFolder()
    const other = createServer().listen(0, '127.0.0.1')
    onTestFinished(() => void other.close())
    await new Promise((done) => other.once('listening', done))
    const { port } = other.address() as AddressInfo
    const taken = await manyworlds(['view', '--port', String(port)], { cwd })
    expect(taken).toMatchObject({ code: 1, stdout: '' })
    expect(taken.stderr).toContain('EADDRINUSE')
    const first = await viewing([], cwd)
    const second = await viewing([], cwd)
    expect(new URL(first.url).port).not.toBe(new URL(second.url).port)
  })

  it('is refused to other machines without a token and TLS, and says what to give', async () => {
    const cwd = newFolder()
    writeFileSync(join(cwd, 'token.txt'), 'a-token-of-enough-length\n')
    for (const words of [[], ['--token-file', 'token.txt']]) {
      const refused = await manyworlds(['view', '--host', '0.0.0.0', ...words], { cwd })
      expect(refused).toMatchObject({ code: 2, stdout: '' })
      for (const option of ['--token-file', '--tls-cert', '--tls-key']) expect(refused.stderr).toContain(option)
    }
  })

  it('shows runs to other machines under its name: with TLS, the token, and no other name', async () => {
    const cwd = newFolder()
    await stored(cwd)
    // A name that does not resolve here cannot be listened on.
    const name = await lookup(hostname()).then(hostname, () => '0.0.0.0')
    const authority = await makeAuthority(cwd, 'authority')
    const { cert, key } = await authority.sign(hostname())
    writeFileSync(join(cwd, 'token.txt'), 'a-token-of-enough-length\n')
    const tls = ['--token-file', 'token.txt', '--tls-cert', cert, '--tls-key', key]
    const { url, token } = await viewing(['--host', name, '--port', '0', ...tls], cwd)
    const { protocol, port, hostname: shownName } = new URL(url)
    expect({ protocol, token, shownName }).toEqual({
      ...{ protocol: 'https:', token: 'a-token-of-enough-length', shownName: hostname().toLowerCase() },
    })
    const { address } = await lookup(name)
    const ask = async (path: string, headers: Record<string, string> = {}) => {
      // As another machine would, which trusts the authority and checks the name.
      const asked = httpsRequest({
        ...{ host: address, port, path, ca: readFileSync(authority.path), servername: hostname(), agent: false },
        headers: { host: `${hostname()}:${port}`, ...headers },
      }).end()
      const [response] = (await once(asked, 'response')) as [IncomingMessage]
      return { status: response.statusCode, headers: response.headers, text: await text(response) }
    }
    const bearer = { authorization: `Bearer ${token}` }
    const page = await ask(`/?token=${token}`)
    expect(page.status).toBe(200)
    const [cookie = ''] = page.headers['set-cookie'] ?? []
    expect(cookie).toMatch(/; HttpOnly; SameSite=Strict; Secure$/)
    const runs = await ask('/api/runs', { cookie: cookie.split(';', 1)[0]!, origin: `https://${hostname()}:${port}` })
    expect(JSON.parse(runs.text)).toMatchObject({ runs: [{ runId: 'second' }, { runId: 'first' }] })
    const refusals: [number, string, Record<string, string>][] = [
      [401, '/api/runs', {}],
      [401, '/api/runs', { authorization: 'Bearer another-token-of-this-length' }],
      [401, '/?token=another-token-of-this-length', {}],
      [403, '/api/runs', { ...bearer, host: `evil.example:${port}` }],
      [403, '/api/runs', { ...bearer, origin: `http://${hostname()}:${port}` }],
    ]
    for (const [status, path, headers] of refusals)
      expect((await ask(path, headers)).status, `${path} ${JSON.stringify(headers)}`).toBe(status)
    // Without TLS it is not answered at all.
    await expect(fetch(`http://${address}:${port}/`)).rejects.toThrow()
  })

  it('mistakes are one error', async () => {
    const cwd = newFolder()
    await stored(cwd)
    mkdirSync(join(cwd, 'empty'))
    writeFileSync(join(cwd, 'other.sqlite'), 'hello')
    const none = await manyworlds(['view', 'nothing'], { cwd, env: { MANYWORLDS_STORE: '' } })
    expect(none).toMatchObject({ code: 2, stdout: '' })
    expect(none.stderr).toContain("no run 'nothing'")
    const other = await manyworlds(['view', 'other.sqlite'], { cwd })
    expect(other).toMatchObject({ code: 2, stdout: '' })
    expect(other.stderr).toContain('NOT_A_STORE')
    const host = await manyworlds(['view', '--host', 'no-such-host.invalid', '--token-file', 'x'], { cwd })
    expect(host).toMatchObject({ code: 2, stdout: '' })
    const { start } = await viewing(['empty', '--port', '0'], cwd)
    expect(await start()).toMatchObject({ route: '#/' })
  })
})

describe('manyworlds view of a store that cannot be read', () => {
  const sound = join(import.meta.dirname, '../store/fixtures/seventh/store.sqlite')
  const newer = (path: string) => {
    copyFileSync(sound, path)
    using db = new DatabaseSync(path)
    db.exec('PRAGMA user_version = 999')
  }
  it.each([
    ['a text file', (path: string) => writeFileSync(path, 'hello'), 2, 'NOT_A_STORE'],
    ['cut off', (path: string) => writeFileSync(path, readFileSync(sound).subarray(0, 10_000)), 1, 'STORE_CORRUPT'],
    ['of a newer version', newer, 1, 'STORE_NEWER'],
  ] as const)('is one error at the start: %s', async (_, write, code, errorCode) => {
    const cwd = newFolder()
    const store = join(cwd, '.manyworlds/runs')
    mkdirSync(store, { recursive: true })
    write(join(store, 'store.sqlite'))
    for (const words of [[], [store, '--out', 'report.html']]) {
      const ended = await manyworlds(['view', ...words], { cwd, env: { MANYWORLDS_STORE: '' } })
      expect(ended, words.join(' ')).toMatchObject({ code, stdout: '' })
      expect(ended.stderr, words.join(' ')).toMatch(new RegExp(`^manyworlds: .*store\\.sqlite .*\\[${errorCode}\\]\n$`))
    }
  })
})

it('manyworlds view of a copied file leaves nothing beside it, and does not change it', async () => {
  const cwd = newFolder()
  const path = join(cwd, 'sent.sqlite')
  // In WAL mode, as the store of a folder is.
  copyFileSync(join(import.meta.dirname, '../store/fixtures/seventh/store.sqlite'), path)
  const before = readFileSync(path)
  const { child, exited, url, token } = await viewing(['sent.sqlite', '--port', '0'], cwd)
  const runs = await fetch(new URL('/api/runs', url), { headers: { authorization: `Bearer ${token}` } })
  expect(runs.status).toBe(200)
  child.kill('SIGINT')
  expect(await exited).toBe(0)
  expect(readdirSync(cwd)).toEqual(['sent.sqlite'])
  expect(readFileSync(path).equals(before)).toBe(true)
})

describe('manyworlds run --view', () => {
  it('shows the run while it goes on, prints the address once, and ends with the script', async () => {
    const cwd = newFolder()
    const agents = join(import.meta.dirname, '../agents/viewed.ts')
    /** The run goes on until this file exists. */
    const seen = join(cwd, 'seen')
    writeFileSync(
      join(cwd, 'script.ts'),
      `import { Runners } from ${JSON.stringify(import.meta.resolve('manyworlds'))}
      import { waitingFor } from ${JSON.stringify(agents)}
      await Runners.runTask([waitingFor.task(${JSON.stringify(seen)}, { id: 'w' })], { workerNum: 1, runId: 'beside' })`,
    )
    const command = inBackground(['run', 'script.ts', '--view'], { cwd, env: { MANYWORLDS_STORE: '' } })
    const line = /viewer: (http:\/\/\S+\?token=(\S+))/g
    await expect.poll(() => command.output(), { timeout: 50_000 }).toMatch(line)
    const [, url, token] = [...command.output().matchAll(line)][0]!
    const headers = { authorization: `Bearer ${token}` }
    const read = async (path: string) => (await fetch(new URL(path, url), { headers })).json()
    expect(await read('/api/start')).toMatchObject({ route: '#/run/beside' })
    expect(await read('/api/run?run=beside')).toMatchObject({ overview: { status: 'running' } })
    writeFileSync(seen, '')
    expect(await command.exited).toBe(0)
    expect([...command.output().matchAll(line)]).toHaveLength(1)
    await expect.poll(() => read('/api/start').catch(() => 'gone')).toBe('gone')
  })

  it('is refused without a store', async () => {
    const refused = await manyworlds(['run', 'script.ts', '--view', '--no-store'], { cwd: newFolder() })
    expect(refused).toMatchObject({ code: 2 })
    expect(refused.stderr).toContain('--view')
  })
})
