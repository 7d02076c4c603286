import { afterAll } from 'vitest'
import { testEngine } from '../../dist/testing/index.js'
import { startNode } from './daemon.ts'
import { ADDRESSES } from './engine.ts'

/** The conformance kit on three nodes of this machine. In the storm they have addresses of their own: namespaces.test.ts. */
const nodes = await Promise.all([startNode(), startNode(), startNode()])
process.env[ADDRESSES] = nodes.map(({ address }) => address).join(',')
afterAll(async () => {
  await Promise.all(nodes.map((node) => node.kill('SIGTERM')))
})
testEngine('nodes', { module: new URL('./engine.ts', import.meta.url), export: 'makeNodes' })
