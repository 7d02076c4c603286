import { type Call, DialError, dial } from './dial.ts'
import { newSessionId } from './handshake.ts'
import { type HostStatus, hostStatus, parse } from './host-messages.ts'
import { HANDSHAKE_MS } from './limits.ts'

/** Asks a node for its status. Throws a DialError that says why it cannot be used. */
export async function askStatus(call: Omit<Call, 'hello'>): Promise<HostStatus> {
  const hello = { role: 'status', session: newSessionId(), fresh: true, received: 0 } as const
  const { peer } = await dial({ ...call, hello })
  try {
    const message = await peer.next(HANDSHAKE_MS).catch((error: Error) => {
      throw new DialError(error.message, 'other', error)
    })
    if (message === undefined)
      throw new DialError(`it did not send its status within ${HANDSHAKE_MS / 1000} s`, 'other')
    const status = parse(hostStatus, message.bytes)
    if (status === undefined) throw new DialError('its status is malformed', 'other')
    return status
  } finally {
    peer.socket.terminate()
  }
}
