import { type Address, showAddress } from '../../../network/address.ts'
import { askStatus } from '../../../network/ask-status.ts'
import type { DialError } from '../../../network/dial.ts'
import type { HostStatus } from '../../../network/host-messages.ts'
import type { Access } from '../../options/access.ts'

/** The state of a node, or why it cannot be used. */
export type NodeLook = { readonly address: string } & (
  | { readonly status: HostStatus; readonly error?: never }
  | { readonly error: DialError; readonly status?: never }
)

/** Asks all nodes at the same time, so that one that does not answer does not delay the others. */
export const lookAt = (addresses: readonly Address[], access: Access): Promise<NodeLook[]> =>
  Promise.all(
    addresses.map(async (address): Promise<NodeLook> => {
      const name = showAddress(address)
      try {
        return { address: name, status: await askStatus({ address, ...access }) }
      } catch (error) {
        return { address: name, error: error as DialError }
      }
    }),
  )

/** Why it cannot be used, with command-line options in place of configuration keys. */
export const problemOf = ({ message }: DialError): string =>
  message
    .replaceAll(/\btls\.(ca|cert|key)\b/g, '--tls-$1')
    .replaceAll('tls.serverName', '--server-name')
    .replaceAll('`tls`', '--tls')
