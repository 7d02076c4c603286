import { randomBytes } from 'node:crypto'
import { ManyworldsError } from '../../errors.ts'
import type { SlotInstructions } from '../../host/slot-instructions.ts'
import { showAddress } from '../../network/address.ts'
import { listenWords } from '../../network/error-words.ts'
import type { Hosts } from '../nodes/hosts.ts'
import { findCallbackAddress } from './callback-address.ts'
import { parseRemote } from './connect/remote.ts'
import { isNodeBinary } from './launcher.ts'
import type { SparkOptions } from './options.ts'
import { readOwnTls } from './remote.ts'
import type { Server } from './server.ts'

/** Listens for slots. Resolves with their instructions. */
export async function openCallback(hosts: Hosts, server: Server, options: SparkOptions): Promise<SlotInstructions> {
  const { advertiseHost, port = 0 } = options
  const tls = readOwnTls(options.tls)
  const callback = await findCallbackAddress(beside(server), advertiseHost)
  const token = randomBytes(24).toString('hex')
  const { bind } = callback
  const own = tls && { cert: tls.cert!, key: tls.key! }
  try {
    // Refused slots report that through Spark; other callers don't concern the user.
    const listening = await hosts.listen({ host: bind, port, token, tls: own, refused: () => {} })
    const orders = { hosts: callback.hosts, port: listening, token }
    if (tls === undefined) return orders
    const { ca, cert, serverName } = tls
    return { ...orders, tls: { ca: ca ?? cert!, ...(serverName === undefined ? {} : { serverName }) } }
  } catch (cause) {
    const why = listenWords(cause as NodeJS.ErrnoException)
    throw new ManyworldsError(
      'ENGINE_FAILED',
      `spark.port: cannot listen on ${showAddress({ host: bind, port })}: ${why}`,
      { cause },
    )
  }
}

/** Executors on this machine use the driver's own Node.js; the one on the PATH may be older. */
export function nodeFor(server: Server, { nodeBinary }: SparkOptions): string {
  if (beside(server) !== undefined) return nodeBinary ?? 'node'
  const own = nodeBinary ?? process.execPath
  return isNodeBinary(own) ? own : 'node'
}

/** An address in the executors' network; undefined if they are threads of a process on this machine. */
function beside({ master = '', remote }: Server): { host: string; port: number } | undefined {
  if (/^local\b/.test(master)) return undefined
  const [, host, port] = /^spark:\/\/([^:,]+):(\d+)/.exec(master) ?? []
  return host === undefined ? parseRemote(remote) : { host, port: Number(port) }
}
