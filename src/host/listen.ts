import { ManyworldsError } from '../errors.ts'
import { type Address, isLoopback, showAddress } from '../network/address.ts'
import { listenWords } from '../network/error-words.ts'
import { type Gate, openGate, type ServerTls } from '../network/gate.ts'
import { userToken } from '../network/token.ts'
import type { NodeHost } from './node-host.ts'

const DEFAULT_CONNECTIONS = 64

export interface ListenOptions {
  readonly address: Address
  readonly token: string | undefined
  readonly tls: ServerTls | undefined
  readonly maxConnections?: number | undefined
  readonly log: (line: string) => void
}

/** Listens for drivers. Anyone who can call without a token could run anything here, so beyond loopback a token is required. */
export async function listenForDrivers(host: NodeHost, options: ListenOptions): Promise<Gate> {
  const { address, token, tls, log, maxConnections = DEFAULT_CONNECTIONS } = options
  if (token === undefined && !isLoopback(address.host))
    throw new ManyworldsError(
      'CONFIG_INVALID',
      `refusing to listen on ${showAddress(address)} without a token: everybody who can reach it could run code here. Make one with \`manyworlds node token --out token.txt\`, start the node with --token-file token.txt, and give the same file to the driver as nodes.tokenFile`,
    )
  const secret = token ?? userToken()
  try {
    return await openGate({
      ...{ host: address.host, port: address.port, token: secret, tls, maxConnections },
      admit: (hello) => host.admit(hello),
      accept: (peer, hello) => host.accept(peer, hello),
      refused: (line) => log(`refused ${line}`),
    })
  } catch (cause) {
    const why = listenWords(cause as NodeJS.ErrnoException)
    throw new ManyworldsError('ENGINE_FAILED', `cannot listen on ${showAddress(address)}: ${why}`, { cause })
  }
}
