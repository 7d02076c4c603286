import { nodeAddresses } from '../../cli/options/addresses.ts'
import { counted } from '../../text/quantities.ts'
import type { EngineDoctor } from '../cli-parts.ts'

type Given = { readonly [Key in 'nodes' | 'tokenFile' | 'tlsCa']?: string | undefined }

/** What `manyworlds doctor` looks at for this engine. */
export const nodesDoctor: EngineDoctor = {
  asks: 'With --nodes, or if MANYWORLDS_NODES names some, each node is asked too: whether it can be reached, takes the token, and has the same version.',
  options: {
    nodes: {
      type: 'text',
      value: 'A,B',
      description: 'the addresses of nodes to check; default: those that MANYWORLDS_NODES names',
    },
  },
  owns: 'nodes',
  example: {
    about: 'can these nodes be used from here?',
    line: 'manyworlds doctor --nodes worker1:5000,worker2:5000 --token-file token.txt',
  },
  sections: { nodes: 'Nodes' },
  async check(given) {
    const { nodes, tokenFile, tlsCa } = given as Given
    const addresses = nodeAddresses(nodes === undefined ? [] : [nodes])
    if (addresses.length === 0) return []
    // Loaded only now: the rest of `doctor` runs on an old Node too.
    const [{ accessOf }, { checkNodes }] = await Promise.all([
      import('../../cli/options/access.ts'),
      import('./check-nodes.ts'),
    ])
    return checkNodes(addresses, accessOf({ tokenFile, tlsCa }))
  },
  conclude(checks) {
    const nodes = checks.filter(({ concerns }) => concerns === 'nodes')
    if (nodes.length === 0) return undefined
    const usable = nodes.filter(({ required, status }) => !required || status === 'ok').length
    return `${usable} of ${counted(nodes.length, 'node')} can be used.`
  },
}
