import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { startDaemon, until } from '../nodes/daemon.ts'
import { inBackground, nodeForTest } from './background.ts'
import { manyworlds, newFolder } from './manyworlds.ts'
import { gatedScript, plainScript } from './node-script.ts'
import { project } from './project.ts'

const TOKEN = /^mw_[\w-]{43}\n$/

/** What is typed after `manyworlds node`, and what is said about it. Each is one line, and perhaps where to read on. */
const MISTAKES: Readonly<Record<string, string>> = {
  '': 'give --listen 127.0.0.1:5000 to wait for drivers, or --connect wss://driver:7000 to connect to a driver',
  'status worker1': 'ACTION must be one of token, not "status"',
  '--listen worker1:port': "--listen: 'worker1:port' is not an address; give host:port, such as worker1.cluster:5000",
  '--listen 127.0.0.1:70000': "--listen: '127.0.0.1:70000': there is no port 70000",
  '--connect http://driver': "--connect: 'http://driver' begins with http://; give host:port, ws://host:port",
  '--listen 127.0.0.1:0 --connect driver': '--listen and --connect exclude each other',
  '--listen 127.0.0.1:0 --stay': '--stay can only be used with --connect',
  '--listen 127.0.0.1:0 --workers 0': '--workers must be at least 1, not 0',
  '--listen 127.0.0.1:0 --lease 1m': '--lease can be at most 15s',
  '--listen 127.0.0.1:0 --out token': '--out can only be used with "manyworlds node token"',
  '--listen 127.0.0.1:0 --tls-cert a': '--tls-cert can only be used with --tls-key',
  '--listen wss://127.0.0.1:0': '--listen: wss:// needs --tls-cert and --tls-key',
  '--connect driver --tls-cert a --tls-key b --client-ca c': '--client-ca can only be used with --listen',
  '--connect driver:7000': '--connect: driver:7000 is not on this machine, so a token is needed',
  'token --listen 127.0.0.1:0': '"manyworlds node token" only makes a token',
  '--listen 127.0.0.1:0 --token-file none': '--token-file: the token cannot be read: ENOENT',
  '--listen 127.0.0.1:0 --token-file /': '--token-file: the token cannot be read: / is a folder',
  '--listen 127.0.0.1:0 --token-file short': '--token-file: short has a token of 5 characters, at least 16 are needed',
  '--listen 127.0.0.1:0 --tls-cert none --tls-key short': '--tls-cert cannot be read: ENOENT',
  '--listen 127.0.0.1:0 --tls-cert short --tls-key short': '--tls-cert is not a valid PEM file',
  '--listen 127.0.0.1:0 --cache-dir short': 'cannot use the folder for code and workers: ',
}

describe('a mistake in how a node is started', () => {
  it.each(Object.entries(MISTAKES))('manyworlds node %s', async (typed, message) => {
    const cwd = newFolder()
    writeFileSync(join(cwd, 'short'), 'short\n')
    const { code, stdout, stderr } = await manyworlds(['node', ...typed.split(' ').filter(Boolean)], { cwd })
    const [first, hint = '', ...more] = stderr.split('\n')
    expect(first).toMatch(/^manyworlds( node)?: /)
    expect(first).toContain(message)
    expect(hint).toMatch(/^$| help node` for usage$/)
    expect(more.join('')).toBe('')
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  })

  it('is to let everybody in', async () => {
    const { code, stderr } = await manyworlds(['node', '--listen', '0.0.0.0:0'])
    expect(code).toBe(2)
    expect(stderr).toMatch(/^manyworlds node: refusing to listen on 0\.0\.0\.0:0 without a token: [^\n]*\n$/)
    expect(stderr).toContain('`manyworlds node token --out token.txt`')
    expect(stderr).toContain('--token-file token.txt')
  })

  it('is a port that is in use', async () => {
    const { address } = await nodeForTest()
    const { code, stderr } = await manyworlds(['node', '--listen', address])
    expect(code).toBe(1)
    expect(stderr).toBe(
      `manyworlds node: cannot listen on ${address}: something else listens there (EADDRINUSE) [ENGINE_FAILED]\n`,
    )
  })

  it('is a driver that is not there, after a while', async () => {
    const { port, kill } = await nodeForTest()
    await kill()
    const words = ['node', '--connect', `127.0.0.1:${port}`, '--give-up', '4s', '--cache-dir', newFolder()]
    const { code, stderr } = await manyworlds(words)
    expect(code).toBe(1)
    expect(stderr.trimEnd().split('\n')).toEqual([
      expect.stringContaining('joins the driver at ws://127.0.0.1'),
      expect.stringMatching(/nothing listens there .*; trying again$/),
      expect.stringMatching(/nothing listens there .*\[NODES_UNREACHABLE\]$/),
    ])
  })
})

describe('manyworlds node token', () => {
  it('prints a new one each time, and nothing else', async () => {
    const [one, other] = await Promise.all([manyworlds(['node', 'token']), manyworlds(['node', 'token'])])
    for (const made of [one, other]) expect(made).toEqual({ code: 0, stderr: '', stdout: expect.stringMatching(TOKEN) })
    expect(one.stdout).not.toBe(other.stdout)
  })

  it('writes a file that only its owner can read, and never over another', async () => {
    const cwd = newFolder()
    const write = () => manyworlds(['node', 'token', '--out', 'token.txt'], { cwd })
    expect(await write()).toMatchObject({ code: 0, stdout: '' })
    const path = join(cwd, 'token.txt')
    const token = readFileSync(path, 'utf8')
    expect(token).toMatch(TOKEN)
    expect(statSync(path).mode & 0o777).toBe(0o600)
    expect(await write()).toEqual({
      code: 2,
      stdout: '',
      stderr: 'manyworlds node: --out: token.txt already exists and is not overwritten [CONFIG_INVALID]\n',
    })
    expect(readFileSync(path, 'utf8')).toBe(token)
  })
})

describe('manyworlds node', { timeout: 150_000 }, () => {
  it('says what is not safe, in lines that are all its own', async () => {
    const file = join(newFolder(), 'token')
    writeFileSync(file, 'mw_a-token-that-everybody-reads', { mode: 0o644 })
    const node = await nodeForTest({ host: '0.0.0.0', env: { ...process.env, MANYWORLDS_TOKEN_FILE: file } })
    const refused = await manyworlds(['nodes', 'status', `127.0.0.1:${node.port}`])
    expect(refused.code).toBe(1)
    await until(node, /refused .*the token is not the one/)
    await node.kill('SIGTERM')
    expect(node.output()).toContain(`chmod 600 ${file}`)
    for (const line of node.output().trimEnd().split('\n')) expect(line).toMatch(/^manyworlds node: \S/)
  })

  it('lets the task that it has finish at SIGTERM, and takes nothing more', async () => {
    const node = await nodeForTest({ args: ['--workers', '1'] })
    const gate = join(newFolder(), 'open')
    const { options } = project({ 'slow.ts': gatedScript(1, gate) })
    const run = inBackground(['run', 'slow.ts', '--nodes', node.address, '--json'], options)
    await taskRuns(node.address)
    node.child.kill('SIGTERM')
    await until(node, /SIGTERM: no more tasks are accepted/)
    const draining = await manyworlds(['nodes', 'status', node.address])
    expect(draining).toMatchObject({ code: 0, stdout: expect.stringMatching(/ draining +1\/1 +1 /) })
    writeFileSync(gate, '')
    expect(await node.exited).toBe(0)
    expect(await run.exited).toBe(0)
    expect(responses(run.stdout())).toMatchObject([{ id: 't0', success: true, attempts: 1 }])
  })

  it('serves a second driver when the first is done', async () => {
    const node = await nodeForTest({ args: ['--workers', '1'] })
    const gate = join(newFolder(), 'open')
    const { options } = project({ 'slow.ts': gatedScript(2, gate) })
    const start = () => inBackground(['run', 'slow.ts', '--nodes', node.address, '--json'], options)
    const first = start()
    await taskRuns(node.address)
    const second = start()
    await statusOf(node.address, ({ drivers }) => drivers.length === 2)
    writeFileSync(gate, '')
    expect(await Promise.all([first.exited, second.exited])).toEqual([0, 0])
    const done = Math.max(...responses(first.stdout()).map(({ at }) => at))
    const begun = Math.min(...responses(second.stdout()).map(({ at, timing }) => at - timing.runMs))
    expect(begun).toBeGreaterThan(done)
  })

  it('sends drivers away beyond its limit, who try again', async () => {
    const node = await nodeForTest({ args: ['--max-drivers', '1'] })
    const gate = join(newFolder(), 'open')
    const { options } = project({ 'slow.ts': gatedScript(1, gate), 'quick.ts': plainScript(1, 1) })
    const start = (script: string) => inBackground(['run', script, '--nodes', node.address], options)
    const first = start('slow.ts')
    await taskRuns(node.address)
    const second = start('quick.ts')
    await until(second, /this node serves 1 driver already, and 1 is its limit; trying again/)
    writeFileSync(gate, '')
    expect(await Promise.all([first.exited, second.exited])).toEqual([0, 0])
  })

  it('joins a run that waits for it, and ends with it', async () => {
    const { options } = project({ 'join.ts': plainScript(4, 100) })
    const run = inBackground(['run', 'join.ts', '--listen', '127.0.0.1:0'], options)
    await until(run, /nodes can join: manyworlds node --connect (\S+)\n/)
    const [, url] = /--connect (\S+)\n/.exec(run.output())!
    const node = startDaemon({ args: ['--connect', url!, '--workers', '1', '--cache-dir', newFolder()] })
    onTestFinished(() => node.kill())
    expect(await run.exited).toBe(0)
    expect(run.stdout()).toBe(`parents ${node.pid}\n`)
    expect(await node.exited).toBe(0)
    expect(node.output()).toContain('the driver is done')
  })
})

interface Response {
  readonly type: string
  readonly at: number
  readonly timing: { readonly runMs: number }
}

const responses = (lines: string) =>
  lines
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as Response)
    .filter(({ type }) => type === 'response')

/** Resolves when a node has something to do. */
const taskRuns = (address: string) => statusOf(address, ({ tasks }) => tasks > 0)

interface Status {
  readonly tasks: number
  readonly drivers: readonly unknown[]
}

/** Resolves when a node is like this. */
async function statusOf(address: string, asWanted: (status: Status) => boolean): Promise<void> {
  let last: Status | undefined
  for (const until = Date.now() + 60_000; Date.now() < until; ) {
    const { stdout } = await manyworlds(['nodes', 'status', address, '--json'])
    last = (JSON.parse(stdout) as Status[])[0]!
    if (asWanted(last)) return
  }
  throw new Error(`the node on ${address} is not as wanted: ${JSON.stringify(last)}`)
}
