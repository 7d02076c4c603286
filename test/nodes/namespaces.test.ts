import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, expect, test } from 'vitest'
import { Runners } from '../../dist/index.js'
import { testEngine } from '../../dist/testing/index.js'
import { noting } from '../agents/nodes.ts'
import { linesOf } from '../support/ledger.ts'
import { childrenOf } from '../support/process-tree.ts'
import { startNode } from './daemon.ts'
import { ADDRESSES, TOKEN } from './engine.ts'
import { makeNamespace, whyNoNamespaces } from './namespaces.ts'

/** The conformance kit on three nodes with addresses of their own, and a cable that can really be pulled. */
const reason = whyNoNamespaces()
if (reason !== undefined) {
  process.stderr.write(`SKIPPED: nodes in network namespaces: ${reason}\n`)
  test.skip(`nodes in network namespaces: ${reason}`, () => {})
} else await withNamespaces()

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

  test('a cable that is pulled for eight seconds costs no work, one that stays out moves it', {
    timeout: 240_000,
  }, async () => {
    const file = join(folder, 'ledger')
    const tasks = Array.from({ length: 18 }, (_, i) => noting.task({ ms: 8000, file, id: `t${i}` }, { id: `t${i}` }))
    const addresses = nodes.map(({ address }) => address)
    const run = Runners.runTask(tasks, {
      engineName: 'nodes',
      nodes: { addresses, token },
      concurrency: 3,
      workerNum: 6,
    })
    const starts = () => linesOf(file, 'start')
    await expect.poll(() => starts().length, { timeout: 60_000 }).toBe(18)
    // The node that has just started a task stays away, so that the task cannot end there.
    const last = Number(starts().at(-1)!.split(' ')[2])
    const away = nodes.findIndex(({ pid }) => childrenOf(pid).includes(last))
    expect(away).toBeGreaterThanOrEqual(0)
    const back = (away + 1) % nodes.length
    for (const index of [away, back]) spaces[index]!.plug(false)
    // Long enough for a connection to be given up, and as far as possible from the 15 s after which a node is lost.
    await sleep(8000)
    spaces[back]!.plug(true)
    const responses = await run
    spaces[away]!.plug(true)
    expect([...responses].every(([id, { answer, attempts }]) => answer === id && attempts === 1)).toBe(true)
    // Those of the node that stayed away were started again elsewhere, those of the other were not.
    expect(starts().length).toBeGreaterThan(18)
    expect(starts().length).toBeLessThanOrEqual(18 + 6)
  })

  testEngine(
    'nodes (in network namespaces)',
    { module: new URL('./engine.ts', import.meta.url), export: 'makeNodes' },
    { loopback: false },
  )
}
