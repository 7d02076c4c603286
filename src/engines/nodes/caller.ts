import { type Address, showAddress } from '../../network/address.ts'
import { type ClientTls, type DialError, dial } from '../../network/dial.ts'
import { nap, stayInTouch } from '../../network/stay-in-touch.ts'
import type { RemoteNode } from './remote-node.ts'

/** Waits between calls, doubled each time. */
const FIRST_MS = 200
const LONGEST_MS = 10_000
/** Where another try comes to the same until somebody changes something. */
const HOPELESS_MS = 15_000

export interface CallerOptions {
  readonly address: Address
  readonly token: string | undefined
  readonly tls: ClientTls | undefined
  readonly signal: AbortSignal
  /** A new session: who handles it. */
  newNode(name: string): RemoteNode
  /** A call came to nothing. */
  failed(error: DialError): void
  reached(): void
}

/** Calls one node for as long as the engine runs: to begin with, after a cut, and when it is back after it was lost. */
export async function keepCalling(options: CallerOptions): Promise<void> {
  const { address, signal, newNode, failed, reached } = options
  let wait = FIRST_MS
  while (!signal.aborted) {
    const node = newNode(showAddress(address))
    try {
      await call(options, node, true)
    } catch (error) {
      node.session.end((error as Error).message)
      if (signal.aborted) return
      failed(error as DialError)
      await nap((error as DialError).hopeless ? HOPELESS_MS : wait, signal)
      wait = Math.min(LONGEST_MS, 2 * wait)
      continue
    }
    reached()
    const since = performance.now()
    await stayInTouch(node.session, () => call(options, node, false), signal)
    // One that is lost whenever it was reached is called less and less often.
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
