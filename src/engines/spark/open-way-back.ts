import { randomBytes } from 'node:crypto'
import { ManyworldsError } from '../../errors.ts'
import type { SlotOrder } from '../../host/slot-order.ts'
import { showAddress } from '../../network/address.ts'
import type { Hosts } from '../nodes/hosts.ts'
import { parseRemote } from './connect/remote.ts'
import { isNodeBinary } from './launcher.ts'
import type { SparkOptions } from './options.ts'
import { readOwnTls } from './remote.ts'
import type { Server } from './server.ts'
import { findWayBack } from './way-back.ts'

/** Listens for slots. Resolves with what they are told. */
export async function openWayBack(hosts: Hosts, server: Server, options: SparkOptions): Promise<SlotOrder> {
  const { advertiseHost, port = 0 } = options
  const tls = readOwnTls(options.tls)
  const wayBack = await findWayBack(beside(server), advertiseHost)
  const token = randomBytes(24).toString('hex')
  const { bind } = wayBack
  const own = tls && { cert: tls.cert!, key: tls.key! }
  try {
    // Slots that are sent away say so through Spark; others who call are none of the user's business.
    const listening = await hosts.listen({ host: bind, port, token, tls: own, refused: () => {} })
    const orders = { hosts: wayBack.hosts, port: listening, token }
    if (tls === undefined) return orders
    const { ca, cert, serverName } = tls
    return { ...orders, tls: { ca: ca ?? cert!, ...(serverName === undefined ? {} : { serverName }) } }
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException
    const why = code === 'EADDRINUSE' ? 'something else listens there' : message
    throw new ManyworldsError(
      'ENGINE_FAILED',
      `spark.port: cannot listen on ${showAddress({ host: bind, port })}: ${why}`,
      { cause },
    )
  }
}

/** Where executors are here, they can use what this process runs on; what is on the PATH may be older. */
export function nodeFor(server: Server, { nodeBinary }: SparkOptions): string {
  if (beside(server) !== undefined) return nodeBinary ?? 'node'
  const own = nodeBinary ?? process.execPath
  return isNodeBinary(own) ? own : 'node'
}

/** What this process can call that is beside the executors; undefined if they are threads of a process here. */
function beside({ master = '', remote }: Server): { host: string; port: number } | undefined {
  if (/^local\b/.test(master)) return undefined
  const [, host, port] = /^spark:\/\/([^:,]+):(\d+)/.exec(master) ?? []
  return host === undefined ? parseRemote(remote) : { host, port: Number(port) }
}
