import { once } from 'node:events'
import { chmodSync, lstatSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { WebSocketServer } from 'ws'
import { Runners } from '../../dist/index.js'
import { dial } from '../../dist/network/dial.js'
import { openGate } from '../../dist/network/gate.js'
import { newSessionId } from '../../dist/network/handshake.js'
import { NETWORK_PATH } from '../../dist/network/limits.js'
import { newToken } from '../../dist/network/token.js'
import { double } from '../agents/nodes.ts'
import { manyworlds } from '../cli/manyworlds.ts'
import { freePort } from '../support/free-port.ts'
import { type Daemon, startDaemon, startNode } from './daemon.ts'

/** Other users of the same machine can call what listens on its loopback address, and listen there themselves. */

const MB = 2 ** 20
const folder = mkdtempSync(join(tmpdir(), 'mw-strangers-'))
const mine = { XDG_CONFIG_HOME: join(folder, 'mine') }
/** Of another user: what is different for the node is that they cannot read each other's files. */
const theirs = { XDG_CONFIG_HOME: join(folder, 'theirs') }
const noHome = { XDG_CONFIG_HOME: '', HOME: '/dev/null' }

let node: Daemon
beforeAll(async () => {
  node = await startNode({ env: { ...process.env, ...mine } })
})
const started: Pick<Daemon, 'kill'>[] = []
afterEach(async () => {
  await Runners.shutdown()
  for (const one of started.splice(0)) await one.kill('SIGKILL')
})
afterAll(async () => {
  await node.kill('SIGTERM')
  rmSync(folder, { recursive: true, force: true })
})

const status = (address: string, env: Readonly<Record<string, string>>) =>
  manyworlds(['nodes', 'status', address], { env })

test('a node without a token file lets in its own user, and no other', async () => {
  expect(await status(node.address, mine)).toMatchObject({ code: 0, stdout: expect.stringContaining(' up ') })
  const refused = await status(node.address, theirs)
  expect(refused.stdout).toContain('it wants a token, and none was given')
  expect(refused.code).toBe(1)
  await expect.poll(() => node.output()).toMatch(/refused 127\.0\.0\.1: the token is not the one/)
  const file = join(mine.XDG_CONFIG_HOME, 'manyworlds', 'node-token')
  expect(lstatSync(file).mode & 0o777).toBe(0o600)
  expect(readFileSync(file, 'utf8')).toMatch(/^mw_[\w-]{43}\n$/)
})

/** A program without any token that takes every call. */
async function impostor() {
  const calls = { made: 0, accepted: 0 }
  const gate = await openGate({
    ...{ host: '127.0.0.1', port: 0, token: '', tls: undefined, maxConnections: 9 },
    admit: () => 0,
    accept: () => void calls.accepted++,
    refused: () => void calls.made++,
  })
  started.push({ kill: async () => gate.close() })
  return { address: `127.0.0.1:${gate.port}`, calls }
}

test('a driver gives its code to no program of another user that listens on this machine', async () => {
  const { address, calls } = await impostor()
  const refused = await status(address, mine)
  expect(refused.stdout).toContain('it wants a token, and none was given')
  expect(calls).toEqual({ made: 1, accepted: 0 })
})

test('nodes that join a driver on this machine are those of its user', async () => {
  const port = await freePort()
  const args = ['--connect', `127.0.0.1:${port}`, '--workers', '1']
  const done = Runners.runTask(double.task(4), { engineName: 'nodes', nodes: { listen: `127.0.0.1:${port}` } })
  const stranger = startDaemon({ args, env: { ...process.env, ...theirs } })
  expect(await stranger.exited).toBe(1)
  expect(stranger.output()).toContain('it wants a token, and none was given')
  started.push(startDaemon({ args }))
  expect((await done).answer).toBe(8)
})

describe('whoever cannot use their own token calls nobody and lets nobody in', () => {
  const open = { XDG_CONFIG_HOME: join(folder, 'open') }
  beforeAll(() => {
    mkdirSync(join(open.XDG_CONFIG_HOME, 'manyworlds'), { recursive: true, mode: 0o700 })
    const token = join(open.XDG_CONFIG_HOME, 'manyworlds', 'node-token')
    writeFileSync(token, `${newToken()}\n`)
    chmodSync(token, 0o644)
  })
  afterEach(() => vi.unstubAllEnvs())
  const cases = [
    { what: 'others can read it', env: open, why: 'node-token can be read by other users; remove it' },
    { what: 'there is no folder for it', env: noHome, why: "not a directory, mkdir '/dev/null/.config'" },
  ]

  // Only where a process can be killed: Node's own mkdir tries for ever there.
  const endless = { what: 'it would be below /proc', env: { XDG_CONFIG_HOME: '/proc/nope' }, why: 'ENOENT' }

  test.each([...cases, endless])('nodes, because $what', async ({ env, why }) => {
    const { address, calls } = await impostor()
    for (const args of [
      ['--listen', '127.0.0.1:0'],
      ['--connect', address, '--stay'],
    ]) {
      const daemon = startDaemon({ args, env: { ...process.env, ...env } })
      started.push(daemon)
      expect(await daemon.exited).toBe(2)
      expect(daemon.output()).toContain(why)
      expect(daemon.output()).toMatch(/your own token cannot be used: [^\n]*--token-file[^\n]*\[CONFIG_INVALID\]\n$/)
    }
    expect((await status(address, env)).stdout).toContain(why)
    expect(calls).toEqual({ made: 0, accepted: 0 })
  })

  test.each(cases)('drivers, because $what', async ({ env, why }) => {
    const { address, calls } = await impostor()
    for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value)
    for (const nodes of [{ addresses: [address] }, { listen: '127.0.0.1:0' }])
      await expect(Runners.runTask(double.task(4), { engineName: 'nodes', nodes })).rejects.toMatchObject({
        ...{ code: 'CONFIG_INVALID', message: expect.stringContaining(why), cause: expect.any(Error) },
      })
    // As a driver whose token is spoiled during its run.
    const hello = { role: 'driver', session: newSessionId(), fresh: true, received: 0 } as const
    const [host, port] = address.split(':')
    const call = { address: { host: host!, port: Number(port), secure: undefined }, tls: undefined, hello }
    await expect(dial({ ...call, token: undefined })).rejects.toMatchObject({
      ...{ hopeless: true, message: expect.stringContaining(why), cause: expect.any(Error) },
    })
    expect(calls).toEqual({ made: 0, accepted: 0 })
  })
})

test('many processes that need a token at once make one', async () => {
  const all = { XDG_CONFIG_HOME: join(folder, 'all') }
  const daemons = await Promise.all([1, 2, 3].map(() => startNode({ env: { ...process.env, ...all } })))
  started.push(...daemons)
  for (const { address } of daemons) expect(await status(address, all)).toMatchObject({ code: 0 })
})

/** A text message of so many bytes, of which `sent` come. */
function part(size: number, sent: number, masked: boolean): Buffer {
  const header = Buffer.alloc(masked ? 14 : 10)
  header[0] = 0x81
  header[1] = 127 | (masked ? 0x80 : 0)
  header.writeBigUInt64BE(BigInt(size), 2)
  return Buffer.concat([header, Buffer.alloc(sent, 'a')])
}

test('a caller that has proved nothing is cut off after a few KB, not after a message', async () => {
  const socket = connect(node.port, '127.0.0.1')
  await once(socket, 'connect')
  socket.write(
    `GET ${NETWORK_PATH} HTTP/1.1\r\nHost: node\r\nConnection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${'A'.repeat(22)}==\r\n\r\n`,
  )
  let heard = ''
  socket.on('data', (bytes) => {
    heard += bytes.toString('latin1')
  })
  socket.on('error', () => {})
  await expect.poll(() => heard).toContain('"challenge"')
  // The message is not finished, so nothing can be wrong with it but its size.
  socket.write(part(MB, 64 * 1024, true))
  await once(socket, 'close')
  expect(heard).toContain('too much data before the handshake completed')
})

test('a node that has proved nothing is cut off as well', async () => {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1', path: NETWORK_PATH })
  const closed = new Promise<void>((resolve) =>
    server.on('connection', (socket, request) => {
      request.socket.write(part(MB, 64 * 1024, false))
      socket.once('close', () => resolve())
    }),
  )
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const asked = status(`127.0.0.1:${port}`, mine)
  await closed
  expect((await asked).stdout).toContain('it sent too much data before the handshake completed')
  server.close()
})
