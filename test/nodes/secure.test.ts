import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { WebSocketServer } from 'ws'
import { type NodesOptions, Runners } from '../../dist/index.js'
import { Ephemeral } from '../../dist/network/channel.js'
import { NETWORK_VERSION } from '../../dist/network/limits.js'
import { double } from '../agents/nodes.ts'
import { type Identity, makeAuthority } from './certificates.ts'
import { type Daemon, startNode } from './daemon.ts'

/** Who may use a node, and whom a driver trusts. Each mistake is one clear line. */

const TOKEN = 'mw_a-token-for-this-test-only'
/** For runs that fail because no node can be used: long enough for a first call, which says why. */
const REASON_MS = 5000
const folder = mkdtempSync(join(tmpdir(), 'mw-secure-'))
const tokenFile = join(folder, 'token')
const started: Daemon[] = []
let ours: Awaited<ReturnType<typeof makeAuthority>>
let theirs: Awaited<ReturnType<typeof makeAuthority>>
let server: Identity

beforeAll(async () => {
  writeFileSync(tokenFile, `${TOKEN}\n`, { mode: 0o600 })
  ours = await makeAuthority(folder, 'ours')
  theirs = await makeAuthority(folder, 'theirs')
  server = await ours.sign('127.0.0.1')
})
afterEach(async () => {
  await Runners.shutdown()
  await Promise.all(started.splice(0).map((daemon) => daemon.kill()))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

async function node(...args: string[]): Promise<string> {
  const daemon = await startNode({ args })
  started.push(daemon)
  return daemon.address
}

async function use(nodes: NodesOptions) {
  const responses = await Runners.runTask(
    [1, 2, 3].map((n) => double.task(n)),
    {
      engineName: 'nodes',
      nodes: { waitMs: 30_000, ...nodes },
      keepWarmMs: 0,
    },
  )
  return [...responses.values()].map(({ answer }) => answer)
}

const refused = (text: string) => ({ code: 'NODE_REFUSED', message: expect.stringContaining(text) })

test('with the right token, from a file or as text', async () => {
  const address = await node('--token-file', tokenFile)
  expect(await use({ addresses: [address], tokenFile })).toEqual([2, 4, 6])
  expect(await use({ addresses: [address], token: TOKEN })).toEqual([2, 4, 6])
})

test('a wrong token, or none, is refused by the node', async () => {
  const address = await node('--token-file', tokenFile)
  const wrong = refused('it has another token than the one that was given')
  await expect(use({ addresses: [address], token: 'mw_some-other-token-entirely' })).rejects.toMatchObject(wrong)
  await expect(use({ addresses: [address] })).rejects.toMatchObject(refused('it wants a token, and none was given'))
  await expect(use({ addresses: [address] })).rejects.toMatchObject(refused('not authenticated by the token'))
  await expect.poll(() => started[0]!.output()).toMatch(/refused 127\.0\.0\.1: the token is not/)
  // A short token, or a file that is not there, is found before anybody is called.
  await expect(use({ addresses: [address], token: 'short' })).rejects.toMatchObject({ code: 'CONFIG_INVALID' })
  await expect(use({ addresses: [address], tokenFile: '/no/such/file' })).rejects.toMatchObject({
    code: 'CONFIG_INVALID',
  })
})

test('a node that does not know the driver’s token gets no code', async () => {
  // One that says that it knows it.
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1', path: '/manyworlds' })
  const welcome = { type: 'welcome', received: 0, proof: '0'.repeat(64) }
  server.on('connection', (socket) => {
    const key = new Ephemeral().text
    socket.send(JSON.stringify({ type: 'challenge', network: NETWORK_VERSION, version: '0.1.0', key }))
    socket.once('message', () => socket.send(JSON.stringify(welcome)))
  })
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as { port: number }
  await expect(use({ addresses: [`127.0.0.1:${port}`], token: TOKEN })).rejects.toMatchObject(
    refused('does not have the token'),
  )
  server.close()
})

test('a node that refuses does not keep others from working', async () => {
  const [closed, open] = [await node('--token-file', tokenFile), await node()]
  expect(await use({ addresses: [closed, open] })).toEqual([2, 4, 6])
})

test('over TLS, with a certificate of an authority that the driver knows', async () => {
  const address = await node('--tls-cert', server.cert, '--tls-key', server.key, '--token-file', tokenFile)
  expect(await use({ addresses: [address], tls: { ca: ours.path }, tokenFile })).toEqual([2, 4, 6])
  expect(await use({ addresses: [`wss://${address}`], tls: { ca: ours.path }, tokenFile })).toEqual([2, 4, 6])
  const unknown = refused('its certificate is not trusted')
  await expect(use({ addresses: [address], tls: { ca: theirs.path }, tokenFile })).rejects.toMatchObject(unknown)
  await expect(use({ addresses: [address], tls: true, tokenFile })).rejects.toMatchObject(unknown)
  await expect(use({ addresses: [address], tokenFile, waitMs: REASON_MS })).rejects.toMatchObject({
    code: 'NODES_UNREACHABLE',
    message: expect.stringContaining('use wss://'),
  })
})

test('a certificate for another name is refused, unless the driver is told that name', async () => {
  const { cert, key } = await ours.sign('node7.example')
  const address = await node('--tls-cert', cert, '--tls-key', key)
  const tls = { ca: ours.path }
  await expect(use({ addresses: [address], tls })).rejects.toMatchObject(refused('its certificate is for another name'))
  expect(await use({ addresses: [address], tls: { ...tls, serverName: 'node7.example' } })).toEqual([2, 4, 6])
})

test('with --client-ca, only drivers with a certificate of that authority', async () => {
  const address = await node('--tls-cert', server.cert, '--tls-key', server.key, '--client-ca', theirs.path)
  const good = await theirs.sign('driver.example')
  const bad = await ours.sign('stranger.example')
  expect(await use({ addresses: [address], tls: { ca: ours.path, ...good } })).toEqual([2, 4, 6])
  const wanted = refused('it wants a certificate from us that it trusts')
  await expect(use({ addresses: [address], tls: { ca: ours.path } })).rejects.toMatchObject(wanted)
  await expect(use({ addresses: [address], tls: { ca: ours.path, ...bad }, waitMs: REASON_MS })).rejects.toMatchObject({
    message: expect.stringContaining('it may not trust the certificate in tls.cert'),
  })
})

test('TLS to a node that does not speak it', async () => {
  const address = await node()
  await expect(use({ addresses: [address], tls: { ca: ours.path }, waitMs: REASON_MS })).rejects.toMatchObject({
    message: expect.stringContaining('it does not speak TLS'),
  })
})

test('a node of another network version is refused, with both versions', async () => {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1', path: '/manyworlds' })
  server.on('connection', (socket) =>
    socket.send(JSON.stringify({ type: 'challenge', network: 99, version: '9.9.9', nonce: '0'.repeat(32) })),
  )
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as { port: number }
  await expect(use({ addresses: [`127.0.0.1:${port}`] })).rejects.toMatchObject(
    refused('manyworlds 9.9.9 with network version 99'),
  )
  server.close()
})

test('something else than a node is named as such', async () => {
  const { createServer } = await import('node:http')
  const other = createServer((_request, response) => response.writeHead(404).end())
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve))
  const { port } = other.address() as { port: number }
  await expect(use({ addresses: [`127.0.0.1:${port}`], waitMs: REASON_MS })).rejects.toMatchObject({
    code: 'NODES_UNREACHABLE',
    message: expect.stringContaining('is that a manyworlds node?'),
  })
  other.close()
})

test.each([
  [{}, 'needs to know its nodes'],
  [{ addresses: ['http://worker1:80'] }, 'begins with http://'],
  [{ addresses: ['worker1:99999'] }, 'there is no port 99999'],
  [{ addresses: ['worker one'] }, 'is not an address'],
  [{ addresses: ['w:1', 'w:1'] }, 'twice'],
  [{ listen: '0.0.0.0:0' }, 'there is no token'],
  [{ addresses: ['127.0.0.1:1', 'w:1'] }, 'w:1 is not on this machine, so a token is needed'],
  [{ addresses: ['wss://w:1'] }, 'w:1 is not on this machine, so a token is needed'],
  [{ addresses: ['w:1'], tls: { cert: '/tmp/x' } }, '`cert` and `key` together'],
  [{ addresses: ['w:1'], tls: { ca: '/no/such/ca' } }, 'nodes.tls.ca cannot be read'],
  [{ adresses: ['w:1'] }, "unknown key 'nodes.adresses', did you mean 'addresses'?"],
  [{ addresses: ['5000'] }, "'5000' is only a port"],
] as [NodesOptions, string][])('nodes: %j is refused before anything starts', async (nodes, text) => {
  await expect(use(nodes)).rejects.toMatchObject({ code: 'CONFIG_INVALID', message: expect.stringContaining(text) })
})
