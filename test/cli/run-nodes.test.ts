import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { Check } from '../../dist/cli/commands/doctor/check.js'
import { type RunArgs, runSpec } from '../../dist/cli/commands/run/spec.js'
import { parse } from '../../dist/cli/frame/parse.js'
import { engineOf } from '../../dist/cli/script/engine.js'
import { nodesOf } from '../../dist/engines/nodes/cli.js'
import { until } from '../nodes/daemon.ts'
import { inBackground, nodeForTest } from './background.ts'
import { manyworlds, newFolder } from './manyworlds.ts'
import { gatedScript, plainScript } from './node-script.ts'
import { project } from './project.ts'

const TOKEN = 'mw_a-token-for-this-test-only'
const INTERRUPTED = 130

describe('manyworlds run --nodes', () => {
  it('runs a script that knows nothing of nodes on them', async () => {
    const node = await nodeForTest()
    const { options } = project({ 'plain.ts': plainScript(8, 1) })
    const ended = await manyworlds(['run', 'plain.ts', '--nodes', node.address, '--run-id', 'there'], options)
    expect(ended).toMatchObject({ code: 0, stdout: `parents ${node.pid}\n` })
    expect(ended.stderr).toContain('[there] started: 8 tasks on nodes, all workers x 2; ')
    expect(ended.stderr).toContain('8 succeeded (100%)')
    // It was told that the driver is done, and has not found out.
    await until(node, /has left: the driver is done/)
  })

  it('finds the nodes and the token in the environment', async () => {
    const { path, options } = project({ 'plain.ts': plainScript(2, 1), token: TOKEN })
    const node = await nodeForTest({ args: ['--token-file', path('token')] })
    const env = { ...options.env, MANYWORLDS_NODES: node.address, MANYWORLDS_TOKEN_FILE: path('token') }
    const ended = await manyworlds(['run', 'plain.ts', '--engine', 'nodes', '--json'], { ...options, env })
    expect(ended.code, ended.stderr).toBe(0)
    const start = JSON.parse(ended.stdout.split('\n')[0]!)
    expect(start).toMatchObject({ type: 'start', engineName: 'nodes', concurrency: 2 })
    expect(start).not.toHaveProperty('workerNum')
    // Named by nobody else, they are not used.
    const here = await manyworlds(['run', 'plain.ts'], { ...options, env })
    expect(here.stderr).toContain('2 tasks on local')
  })

  it('goes on where it was with the command that it prints', { timeout: 120_000 }, async () => {
    const gate = join(newFolder(), 'open')
    // Many more than its worker holds: those that are there already may still run.
    const { path, options } = project({ 'slow.ts': gatedScript(60, gate, 2) })
    writeFileSync(path('a token'), TOKEN, { mode: 0o600 })
    const node = await nodeForTest({ args: ['--workers', '1', '--token-file', path('a token')] })
    const words = ['run', 'slow.ts', '--nodes', node.address, '--token-file', 'a token', '--run-id', 'half']
    const run = inBackground([...words, '--json'], options)
    await until(run, /"type":"response"/)
    run.child.kill('SIGINT')
    await until(run, /stopping: no new tasks are started/)
    writeFileSync(gate, '')
    expect(await run.exited).toBe(INTERRUPTED)
    const [, line] = /Resume with:\n .*? (run .*)\n/.exec(run.output())!
    expect(line).toBe(`run slow.ts --nodes ${node.address} --token-file 'a token' --json --resume half`)
    const rest = await manyworlds([...words.slice(0, 6), '--resume', 'half'], options)
    expect(rest).toMatchObject({ code: 0, stderr: expect.stringMatching(/\[half\] resumed[\s\S]*restored +[1-5]?\d,/) })
  })

  it.each([
    [['--nodes', 'a', '--engine', 'local'], '--nodes can only be used with --engine nodes'],
    [['--listen', '127.0.0.1:0', '--engine', 'local'], '--listen can only be used with --engine nodes'],
    [['--ray-address', 'a:1', '--engine', 'local'], '--ray-address can only be used with --engine ray'],
    [['--ray-address', 'a:1', '--nodes', 'b'], '--ray-address and --nodes exclude each other'],
    [['--engine', 'nodes'], '--engine nodes needs to know the nodes: --nodes worker1:5000,worker2:5000'],
    [['--nodes', 'http://a'], "'http://a' begins with http://"],
    [['--nodes', 'a', '--token-file', 'none'], 'the token cannot be read: ENOENT'],
    [['--nodes', 'a', '--tls-ca', 'none'], 'nodes.tls.ca cannot be read: ENOENT'],
    [['--listen', '0.0.0.0:0'], 'which others can reach, and there is no token'],
  ])('%j is a mistake', async (words, message) => {
    const { options } = project({ 'plain.ts': plainScript(1, 1) })
    const { code, stdout, stderr } = await manyworlds(['run', 'plain.ts', ...words], options)
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr.split('\n')[0]).toContain(message)
    expect(stderr.trimEnd().split('\n').length).toBeLessThanOrEqual(2)
  })
})

describe('what is typed about nodes', () => {
  const typed = (line: string) => {
    const parsed = parse(runSpec, ['a.ts', ...line.split(' ').filter(Boolean)])
    if (parsed.help) throw new Error('help')
    return parsed.args as unknown as RunArgs
  }

  it('goes over what the script gives, key by key', () => {
    const script = {
      engineName: 'nodes',
      nodes: { addresses: ['a'], token: 'secret', waitMs: 5, tls: { ca: 'x', serverName: 'name' } },
    } as const
    expect(nodesOf(typed(''), script)).toEqual({ nodes: script.nodes })
    expect(nodesOf(typed('--nodes b,c --token-file t --tls-ca y'), script)).toEqual({
      nodes: { addresses: ['b', 'c'], tokenFile: 't', waitMs: 5, tls: { ca: 'y', serverName: 'name' } },
    })
    expect(nodesOf(typed('--tls-ca y --listen l:1'), { engineName: 'nodes', nodes: { tls: true } })).toEqual({
      nodes: { listen: 'l:1', tls: { ca: 'y' } },
    })
    expect(nodesOf(typed(''), { engineName: 'nodes', nodes: { addresses: ['a'], tls: true } })).toEqual({
      nodes: { addresses: ['a'], tls: true },
    })
    expect(nodesOf(typed(''), { engineName: 'local' })).toEqual({})
    expect(nodesOf(typed('--token-file t'), { engineName: 'spark' })).toEqual({})
  })

  it('asks for the engine', () => {
    expect(engineOf(typed(''))).toBeUndefined()
    expect(engineOf(typed('--nodes a'))).toBe('nodes')
    expect(engineOf(typed('--listen a'))).toBe('nodes')
    expect(engineOf(typed('--engine spark'))).toBe('spark')
    expect(engineOf(typed('--ray-address head:6379'))).toBe('ray')
    expect(engineOf(typed('--spark-remote sc://host'))).toBe('spark')
    expect(engineOf(typed('--in-local --spark-master local[2]'))).toBe('spark')
    expect(engineOf(typed('--advertise-host laptop'))).toBeUndefined()
  })
})

describe('manyworlds doctor --nodes', () => {
  it('says of each node whether it can be used, and what to do', async () => {
    const { path, options } = project({ token: TOKEN })
    const [open, closed] = await Promise.all([nodeForTest(), nodeForTest({ args: ['--token-file', path('token')] })])
    const addresses = [open.address, closed.address, '127.0.0.1:9'].join(',')
    const env = { ...options.env, PATH: newFolder(), MANYWORLDS_NODES: addresses, MANYWORLDS_TOKEN_FILE: '' }
    const { code, stdout } = await manyworlds(['doctor', '--json'], { ...options, env })
    expect(code).toBe(1)
    const { checks } = JSON.parse(stdout) as { checks: Check[] }
    expect(checks.filter(({ concerns }) => concerns === 'nodes')).toMatchObject([
      { path: open.address, status: 'ok', version: expect.stringMatching(/^\d/) },
      { path: closed.address, status: 'refused', advice: expect.stringContaining('--token-file') },
      {
        path: '127.0.0.1:9',
        status: 'unreachable',
        advice: expect.stringContaining('manyworlds node --listen HOST:9'),
      },
    ])
    const words = ['doctor', '--nodes', closed.address, '--token-file', path('token')]
    const good = await manyworlds(words, { ...options, env })
    expect(good.code).toBe(0)
    expect(good.stdout).toMatch(new RegExp(`^Nodes\\n {2}✓ +node +\\d\\S+ +${closed.address}$`, 'm'))
    expect(good.stdout).toContain('The local engine works here. 1 of 1 node can be used.')
  })
})
