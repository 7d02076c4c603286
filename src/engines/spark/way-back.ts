import { connect } from 'node:net'
import { networkInterfaces } from 'node:os'
import { isLoopback } from '../../network/address.ts'

/** Where slots can call this process. */
export interface WayBack {
  /** Names or addresses to try, in this order. */
  readonly hosts: readonly string[]
  /** Where to listen. */
  readonly bind: string
}

const PROBE_MS = 5000

/** `server`: what this process calls to get at Spark; executors are supposed to be on the same side of the network. */
export async function findWayBack(
  server: { readonly host: string; readonly port: number } | undefined,
  advertiseHost: string | undefined,
): Promise<WayBack> {
  if (advertiseHost !== undefined)
    return { hosts: [advertiseHost], bind: isLoopback(advertiseHost) ? advertiseHost : '::' }
  // Spark's executors are threads of a process here.
  if (server === undefined) return { hosts: ['127.0.0.1'], bind: '127.0.0.1' }
  const own = await ownAddress(server)
  if (own !== undefined && !isLoopback(own)) return { hosts: [own], bind: '::' }
  // The server is here, or at the end of a tunnel; its executors need not be.
  return { hosts: ['127.0.0.1', ...addresses()], bind: '::' }
}

/** The address that others see when this process calls there. */
function ownAddress({ host, port }: { host: string; port: number }): Promise<string | undefined> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, timeout: PROBE_MS })
    const say = (address: string | undefined) => {
      socket.destroy()
      resolve(address?.replace(/^::ffff:/, ''))
    }
    socket.once('connect', () => say(socket.localAddress))
    socket.once('timeout', () => say(undefined))
    socket.once('error', () => say(undefined))
  })
}

const addresses = (): string[] =>
  Object.values(networkInterfaces())
    .flatMap((all) => all ?? [])
    .filter(({ internal, family }) => !internal && family === 'IPv4')
    .map(({ address }) => address)
