import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { describe, expect, it } from 'vitest'
import type { NodeRow } from '../../dist/cli/commands/nodes/node-row.js'
import { renderNodes } from '../../dist/cli/commands/nodes/render.js'
import { makeAuthority } from '../nodes/certificates.ts'
import { until } from '../nodes/daemon.ts'
import { inBackground, nodeForTest } from './background.ts'
import { manyworlds, newFolder } from './manyworlds.ts'
import { gatedScript } from './node-script.ts'
import { project } from './project.ts'

const NOBODY = '127.0.0.1:9'
const INTERRUPTED = 130

const status = (words: readonly string[], env: Readonly<Record<string, string>> = {}) =>
  manyworlds(['nodes', 'status', ...words], { env: { MANYWORLDS_NODES: '', MANYWORLDS_TOKEN_FILE: '', ...env } })

function tokenFile(token: string): string {
  const file = join(newFolder(), 'token')
  writeFileSync(file, `${token}\n`, { mode: 0o600 })
  return file
}

describe('manyworlds nodes status', () => {
  it('shows the tasks and the driver of a node that works', { timeout: 120_000 }, async () => {
    const node = await nodeForTest({ args: ['--labels', 'gpu,big'] })
    const { options } = project({ 'slow.ts': gatedScript(4, join(newFolder(), 'never')) })
    const run = inBackground(['run', 'slow.ts', '--nodes', node.address], options)
    const driver = `\\S+:${run.child.pid}`
    let shown = ''
    for (const end = Date.now() + 80_000; Date.now() < end && !/up +2\/2 +4 /.test(shown); ) {
      const looked = await status([node.address])
      expect(looked).toMatchObject({ code: 0, stderr: '' })
      shown = looked.stdout
    }
    const [head, row, empty, driverHead, driverRow] = shown.split('\n')
    expect(head).toMatch(/^node +state +workers +tasks +drivers +load\/cores +memory free +up for +version +Node /)
    expect(row).toMatch(new RegExp(`^${node.address} +up +2/2 +4 +1 +[\\d.]+/\\d+ +\\S+ [MG]B +\\d+:\\d\\d +\\d`))
    expect(row).toContain(`${process.version}  ${process.platform}-${process.arch}  gpu,big`)
    expect(empty).toBe('')
    expect(driverHead).toMatch(/^driver +on node +state +workers +tasks +for$/)
    expect(driverRow).toMatch(new RegExp(`^${driver} +${node.address} +connected +2 +4 +\\d:\\d\\d$`))

    const [data] = JSON.parse((await status([node.address, '--json'])).stdout) as NodeRow[]
    expect(data).toMatchObject({
      ...{ address: node.address, state: 'up', workers: 2, workersInUse: 2, tasks: 4, labels: ['gpu', 'big'] },
      drivers: [{ driver: expect.stringMatching(driver), connected: true, workers: 2, tasks: 4 }],
    })
    // A driver of this machine that has ended is known to be gone; one that is stopped may come back.
    run.child.kill('SIGSTOP')
    await expect.poll(async () => (await status([node.address])).stdout, { timeout: 14_000 }).toMatch(/ away /)
    run.child.kill('SIGKILL')
    await run.exited
  })

  it('asks several, and has a row for one that cannot be reached', async () => {
    const [one, two] = await Promise.all([nodeForTest(), nodeForTest()])
    const { code, stdout, stderr } = await status([`${one.address},${NOBODY}`, two.address, one.address])
    expect({ code, stderr }).toEqual({ code: 1, stderr: '' })
    const rows = stdout.trimEnd().split('\n').slice(1)
    expect(rows).toHaveLength(3)
    expect(rows[0]).toMatch(new RegExp(`^${one.address} +up +0/2 +0 +0 `))
    expect(rows[1]).toMatch(/^127\.0\.0\.1:9 +nothing listens there \(ECONNREFUSED\)$/)
    expect(rows[2]).toMatch(new RegExp(`^${two.address} +up `))

    const named = await status(['--json'], { MANYWORLDS_NODES: `${two.address}, ${NOBODY}` })
    expect(named.code).toBe(1)
    expect(JSON.parse(named.stdout)).toMatchObject([
      { address: two.address, state: 'up' },
      { address: NOBODY, state: 'unusable', problem: 'nothing listens there (ECONNREFUSED)' },
    ])
  })

  it('is let in with the token of the node, and says in one line that another is not it', async () => {
    const right = tokenFile('mw_the-token-of-this-node')
    const node = await nodeForTest({ args: ['--token-file', right] })
    const another = tokenFile('mw_the-token-of-another')
    const said = (text: string) => ({
      code: 1,
      stderr: '',
      stdout: expect.stringContaining(`${node.address}  ${text}`),
    })
    expect(await status([node.address])).toEqual(said('it wants a token, and none was given'))
    expect(await status([node.address, '--token-file', another])).toEqual(said('it has another token than'))
    expect(await status([node.address, '--token-file', right])).toMatchObject({ code: 0 })
    expect(await status([node.address], { MANYWORLDS_TOKEN_FILE: right })).toMatchObject({ code: 0 })
  })

  it('speaks TLS, and says which option is missing', async () => {
    const folder = newFolder()
    const authority = await makeAuthority(folder, 'ours')
    const { cert, key } = await authority.sign('127.0.0.1')
    const node = await nodeForTest({ args: ['--tls-cert', cert, '--tls-key', key] })
    expect((await status([node.address])).stdout).toContain('use wss://')
    const untrusted = await status([`wss://${node.address}`])
    expect(untrusted).toMatchObject({ code: 1, stdout: expect.stringContaining('as --tls-ca') })
    expect(await status([node.address, '--tls-ca', authority.path])).toMatchObject({ code: 0 })
    const plain = await nodeForTest()
    expect((await status([plain.address, '--tls'])).stdout).toContain('it does not speak TLS')
  })

  it('looks again and again, until Ctrl-C', async () => {
    const node = await nodeForTest()
    const words = ['nodes', 'status', node.address, '--watch', '200ms', '--json']
    const watching = inBackground(words, { cwd: newFolder() })
    await until(watching, /\n\[.*\n\[.*\n/)
    watching.child.kill('SIGINT')
    expect(await watching.exited).toBe(INTERRUPTED)
    for (const line of watching.stdout().trimEnd().split('\n'))
      expect(JSON.parse(line)).toMatchObject([{ address: node.address, state: 'up' }])
  })

  it.each([
    [[], 'no nodes given; give their addresses, such as worker1:5000, or set MANYWORLDS_NODES'],
    [['http://worker'], "'http://worker' begins with http://; give host:port, ws://host:port or wss://host:port"],
    [['worker', '--watch', '0s'], '--watch must be at least 200ms'],
    [['worker', '--tls-cert', 'a'], '--tls-cert can only be used with --tls-key'],
  ])('%j is a mistake', async (words, message) => {
    const { code, stdout, stderr } = await status(words)
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr.split('\n')[0]).toBe(`manyworlds: ${message}`)
  })

  it('says which variable has the mistake', async () => {
    const { stderr } = await status([], { MANYWORLDS_NODES: 'worker1:5000,worker 2' })
    expect(stderr).toContain("MANYWORLDS_NODES: 'worker 2' is not an address")
  })
})

describe('the table of nodes', () => {
  const up = (address: string): NodeRow => ({
    ...{ address, state: 'up', host: 'worker', pid: 1, version: '0.1.0', node: 'v24.1.0', platform: 'linux-x64' },
    ...{ cores: 64, memoryMb: 256_000, workers: 64, workersInUse: 60, tasks: 3840, labels: ['gpu', 'a\x1b[31mlabel'] },
    ...{ upSeconds: 200_000, leaseMs: 15_000, loadAverage: 12.345, freeMemoryMb: 12_000 },
    drivers: [{ driver: 'laptop\n:1', connected: false, wanted: 60, workers: 60, tasks: 3840, seconds: 3700 }],
  })
  const down: NodeRow = { address: 'down:5000', state: 'unusable', problem: 'nobody is there at all; start it there' }

  it.each([40, 60, 80, 120, 200])('fits into %i columns', (width) => {
    const text = renderNodes([up('worker1.cluster:5000'), down], { color: true, width })
    const lines = stripVTControlCharacters(text).split('\n')
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(width)
    expect(lines[1]).toMatch(/^worker1\.cluster:5000 +up /)
    expect(lines.map((line) => line.trim()).join(' ')).toContain('nobody is there at all; start it there')
  })

  it('shows what others have sent without obeying it', () => {
    const text = renderNodes([up('a:1')], { color: false, width: Number.POSITIVE_INFINITY })
    expect(text).toContain(String.raw`gpu,a\x1b[31mlabel`)
    expect(text.trimEnd().split('\n')).toHaveLength(5)
    expect(text).toMatch(/60\/64 +3,840 +1 +12\.3\/64 +13 GB +2 d 07:33:20 /)
    expect(text).toMatch(/laptop +a:1 +away +60 +3,840 +1:01:40/)
  })
})
