import { NodesRuntime } from '../../dist/index.js'

/** The nodes that a test has started, for whoever has to make the engine: also a driver in another process. */
export const ADDRESSES = 'TEST_NODES_ADDRESSES'
export const TOKEN = 'TEST_NODES_TOKEN'

export const makeNodes = (): NodesRuntime =>
  new NodesRuntime({
    addresses: process.env[ADDRESSES]!.split(','),
    ...(process.env[TOKEN] === undefined ? {} : { token: process.env[TOKEN] }),
  })
