import { ManyworldsError } from '../errors.ts'
import { type Address, showAddress } from '../network/address.ts'
import { type ClientTls, type DialError, dial, REFUSALS } from '../network/dial.ts'
import { newSessionId } from '../network/handshake.ts'
import { nap, reconnect } from '../network/reconnect.ts'
import type { DriverSession } from './driver-session.ts'
import type { NodeHost } from './node-host.ts'

const FIRST_MS = 200
const LONGEST_MS = 10_000

export interface JoinOptions {
  readonly address: Address
  readonly token: string | undefined
  readonly tls: ClientTls | undefined
  /** How long to go on calling a driver that does not answer. */
  readonly giveUpMs: number
  /** The same if nothing listens there. Default: equally long. */
  readonly absentMs?: number
  /** Never stop calling, also after the driver is done: the next one may have the same address. */
  readonly stay: boolean
  readonly signal: AbortSignal
  readonly log: (line: string) => void
}

/** Calls a driver and works for it. Resolves when the driver is done; rejects if it cannot be reached or refuses this host. */
export async function joinDriver(host: NodeHost, options: JoinOptions): Promise<void> {
  // Keeps this process alive while it waits for its driver.
  const staying = setInterval(() => {}, LONGEST_MS)
  try {
    await keepJoining(host, options)
  } finally {
    clearInterval(staying)
  }
}

async function keepJoining(host: NodeHost, options: JoinOptions): Promise<void> {
  const { address, giveUpMs, absentMs = giveUpMs, stay, signal, log } = options
  const name = showAddress(address)
  let wait = FIRST_MS
  let tried = performance.now()
  let said = ''
  let joined = false
  let refusals = 0
  while (!signal.aborted) {
    try {
      const session = await joinOnce(host, options)
      log(`joined the driver at ${name}`)
      joined = true
      refusals = 0
      await reconnect(session.session, () => call(options, session), signal)
      if (session.dismissed && !stay) return
      wait = FIRST_MS
      tried = performance.now()
      said = ''
    } catch (error) {
      const { hopeless, unproved, advice, nobodyThere, message } = error as DialError
      if (signal.aborted) return
      const text = `the driver at ${name}: ${message}`
      refusals = unproved ? refusals + 1 : 0
      // A wrong token is soon known, however long the driver was not there.
      if (refusals === 1) wait = FIRST_MS
      // Such a refusal may come from a program in between, which does not end this node with one message or one wrong connection.
      const refused = hopeless || (!joined && refusals >= REFUSALS)
      if (!stay && (refused || performance.now() - tried > (nobodyThere ? absentMs : giveUpMs)))
        throw new ManyworldsError(
          hopeless || unproved ? 'NODE_REFUSED' : 'NODES_UNREACHABLE',
          advice === undefined ? text : `${text}. ${advice}`,
          { cause: error },
        )
      if (said !== text) log(`${text}; trying again`)
      said = text
    }
    await nap(wait, signal)
    wait = Math.min(LONGEST_MS, 2 * wait)
  }
}

async function joinOnce(host: NodeHost, options: JoinOptions): Promise<DriverSession> {
  const { address, token, tls } = options
  const id = newSessionId()
  const hello = { role: 'host', session: id, fresh: true, received: 0 } as const
  const { peer, received } = await dial({ address, token, tls, hello })
  const session = host.open(id, showAddress(address))
  session.attach(peer, received)
  return session
}

async function call({ address, token, tls }: JoinOptions, { session }: DriverSession): Promise<void> {
  const hello = { role: 'host', session: session.id, fresh: false, received: session.received } as const
  const { peer, received } = await dial({ address, token, tls, hello })
  session.attach(peer, received)
}
