import { type Address, showAddress } from '../../network/address.ts'
import { type ClientTls, type DialError, dial } from '../../network/dial.ts'
import { nap, reconnect } from '../../network/reconnect.ts'
import type { RemoteNode } from './remote-node.ts'

/** Waits between calls, doubled each time. */
const FIRST_MS = 200
const LONGEST_MS = 10_000
/** The wait after an error that certainly persists until somebody changes the setup. */
const HOPELESS_MS = 15_000

export interface CallerOptions {
  readonly address: Address
  readonly token: string | undefined
  readonly tls: ClientTls | undefined
  readonly signal: AbortSignal
  /** Makes the handler of a new session. */
  newNode(name: string): RemoteNode
  /** A call failed. */
  failed(error: DialError): void
  reached(): void
}

/** Keeps one node connected while the engine runs: calls it first, reconnects, and calls again after it was lost. */
export async function keepCalling(options: CallerOptions): Promise<void> {
  const { address, signal, newNode, failed, reached } = options
  let wait = FIRST_MS
  let refused = false
  while (!signal.aborted) {
    const node = newNode(showAddress(address))
    try {
      await call(options, node, true)
    } catch (error) {
      node.session.end((error as Error).message)
      if (signal.aborted) return
      failed(error as DialError)
      const { hopeless, unproved } = error as DialError
      // A wrong token is soon known, however long the node was not there.
      if (unproved && !refused) wait = FIRST_MS
      refused = unproved
      await nap(hopeless ? HOPELESS_MS : wait, signal)
      wait = Math.min(LONGEST_MS, 2 * wait)
      continue
    }
    // It may be lost already, by what it sent with its welcome.
    if (!node.session.over) reached()
    const since = performance.now()
    await reconnect(node.session, () => call(options, node, false), signal)
    // A node that is lost again after each connection is called less and less often.
    if (performance.now() - since > LONGEST_MS) wait = FIRST_MS
    await nap(wait, signal)
    wait = Math.min(LONGEST_MS, 2 * wait)
  }
}

async function call({ address, token, tls }: CallerOptions, node: RemoteNode, fresh: boolean): Promise<void> {
  const { id, received } = node.session
  const made = await dial({ address, token, tls, hello: { role: 'driver', session: id, fresh, received } })
  node.attach(made.peer, made.received)
}
