import { networkInterfaces } from 'node:os'
import { isLoopback } from '../../network/address.ts'
import { probeTcp } from '../../network/tcp-probe.ts'

/** The addresses at which slots can call this process. */
export interface CallbackAddress {
  /** Names or addresses to try, in this order. */
  readonly hosts: readonly string[]
  /** Where to listen. */
  readonly bind: string
}

const PROBE_MS = 5000

/** `server`: the address of the Spark server; executors are assumed to be in the same network. */
export async function findCallbackAddress(
  server: { readonly host: string; readonly port: number } | undefined,
  advertiseHost: string | undefined,
): Promise<CallbackAddress> {
  if (advertiseHost !== undefined)
    return { hosts: [advertiseHost], bind: isLoopback(advertiseHost) ? advertiseHost : '::' }
  // Spark's executors are threads of a process on this machine.
  if (server === undefined) return { hosts: ['127.0.0.1'], bind: '127.0.0.1' }
  const own = await ownAddress(server)
  if (own !== undefined && !isLoopback(own)) return { hosts: [own], bind: '::' }
  // The server is on this machine or behind a tunnel; its executors may be on others.
  return { hosts: ['127.0.0.1', ...addresses()], bind: '::' }
}

/** The address that others see when this process connects to `server`. */
async function ownAddress(server: { readonly host: string; readonly port: number }): Promise<string | undefined> {
  const probe = await probeTcp(server, { connectMs: PROBE_MS })
  return probe.outcome === 'open' ? probe.localAddress?.replace(/^::ffff:/, '') : undefined
}

const addresses = (): string[] =>
  Object.values(networkInterfaces())
    .flatMap((all) => all ?? [])
    .filter(({ internal, family }) => !internal && family === 'IPv4')
    .map(({ address }) => address)
