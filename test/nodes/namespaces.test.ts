import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, expect, test } from 'vitest'
import { Runners } from '../../dist/index.js'
import { testEngine } from '../../dist/testing/index.js'
import { noting } from '../agents/nodes.ts'
import { startNode } from './daemon.ts'
import { ADDRESSES, TOKEN } from './engine.ts'
import { makeNamespace, whyNoNamespaces } from './namespaces.ts'

/**
 * The conformance kit on three nodes with addresses of their own, and a cable that can really be pulled. Where there are no network
 * namespaces, the kit runs on three nodes of this machine.
 */
const reason = whyNoNamespaces()
if (reason !== undefined) {
  process.stderr.write(`SKIPPED: nodes in network namespaces: ${reason}\n`)
  test.skip(`nodes in network namespaces: ${reason}`, () => {})
  await onLoopback()
} else await withNamespaces()

async function onLoopback(): Promise<void> {
  const nodes = await Promise.all([startNode(), startNode(), startNode()])
  process.env[ADDRESSES] = nodes.map(({ address }) => address).join(',')
  afterAll(async () => {
    await Promise.all(nodes.map((node) => node.kill('SIGTERM')))
  })
  testEngine('nodes', { module: new URL('./engine.ts', import.meta.url), export: 'makeNodes' })
}

async function withNamespaces(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'mw-netns-'))
  const token = 'mw_a-token-for-this-test-only'
  const tokenFile = join(folder, 'token')
  writeFileSync(tokenFile, token, { mode: 0o600 })
  const spaces = [1, 2, 3].map(makeNamespace)
  const nodes = await Promise.all(
    spaces.map(({ enter, address }) =>
      startNode({ before: enter, host: address, port: 5000, args: ['--token-file', tokenFile] }),
    ),
  )
  process.env[ADDRESSES] = nodes.map(({ address }) => address).join(',')
  process.env[TOKEN] = token
  afterAll(async () => {
    await Runners.shutdown()
    await Promise.all(nodes.map((node) => node.kill('SIGTERM')))
    for (const space of spaces) space.remove()
    rmSync(folder, { recursive: true, force: true })
  })

  test('a cable that is pulled for ten seconds costs no work, one that stays out moves it', {
    timeout: 180_000,
  }, async () => {
    const file = join(folder, 'ledger')
    const tasks = Array.from({ length: 18 }, (_, i) => noting.task({ ms: 2000, file, id: `t${i}` }, { id: `t${i}` }))
    const addresses = nodes.map(({ address }) => address)
    const run = Runners.runTask(tasks, {
      engineName: 'nodes',
      nodes: { addresses, token },
      concurrency: 3,
      workerNum: 6,
    })
    const starts = () => {
      try {
        return readFileSync(file, 'utf8').match(/^start/gm)?.length ?? 0
      } catch {
        return 0
      }
    }
    await expect.poll(starts).toBe(18)
    spaces[0]!.plug(false)
    spaces[1]!.plug(false)
    await sleep(10_000)
    spaces[0]!.plug(true)
    const responses = await run
    spaces[1]!.plug(true)
    expect([...responses].every(([id, { answer, attempts }]) => answer === id && attempts === 1)).toBe(true)
    // Those of the second node were started again elsewhere, those of the first were not.
    expect(starts()).toBeGreaterThan(18)
    expect(starts()).toBeLessThanOrEqual(18 + 6)
  })

  testEngine(
    'nodes (in network namespaces)',
    { module: new URL('./engine.ts', import.meta.url), export: 'makeNodes' },
    { loopback: false },
  )
}
