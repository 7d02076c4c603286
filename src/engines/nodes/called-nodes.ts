import { type DialError, REFUSALS } from '../../network/dial.ts'
import { type Reason, reasonOf } from '../../text/reason.ts'

/** The node at one address. Every state but `connected` is a reason why it cannot be used. */
type State =
  | { readonly is: 'called' }
  | { readonly is: 'connected' }
  | { readonly is: 'lost'; readonly reason: Reason }
  | { readonly is: 'failed'; readonly error: DialError; readonly refusals: number }

/** At least one: an error about no node in particular cannot be made. */
type Problems = readonly [Problem, ...Problem[]]
interface Problem {
  readonly name: string
  readonly reason: Reason
  readonly error: DialError | undefined
  readonly absent: boolean
}

export interface GivenUp {
  readonly code: 'NODE_REFUSED' | 'NODES_UNREACHABLE'
  readonly text: Reason
}

/** What is known of each address that the driver calls. */
export class CalledNodes {
  readonly #states = new Map<string, State>()
  /** Addresses whose node was lost and has not come back. */
  readonly #lost = new Set<string>()
  /** A node has proved that it knows the token. */
  #everConnected = false

  constructor(names: readonly string[]) {
    for (const name of names) this.#states.set(name, { is: 'called' })
  }

  has(name: string): boolean {
    return this.#states.has(name)
  }

  /** Whether a node may still come. */
  get someMissing(): boolean {
    return [...this.#states.values()].some(({ is }) => is !== 'connected')
  }

  /** Returns whether it was lost before. */
  connected(name: string): boolean {
    this.#everConnected = true
    this.#states.set(name, { is: 'connected' })
    return this.#lost.delete(name)
  }

  lost(name: string, reason: Reason): void {
    this.#everConnected = true
    this.#states.set(name, { is: 'lost', reason })
    this.#lost.add(name)
  }

  /** A call failed. Returns whether that is news. */
  failed(name: string, error: DialError): boolean {
    const before = this.#states.get(name)
    const earlier = before?.is === 'failed' ? before : undefined
    this.#states.set(name, { is: 'failed', error, refusals: error.unproved ? (earlier?.refusals ?? 0) + 1 : 0 })
    // A lost node was already reported; don't repeat it.
    return earlier?.error.message !== error.message && !(error.nobodyThere && this.#lost.has(name))
  }

  /**
   * Whether waiting is useless. An `unproved` refusal may come from a program in between, so it counts only if each address repeats
   * it, and no node has ever shown that the token is right.
   */
  get hopeless(): boolean {
    return [...this.#states.values()].every(
      (state) =>
        state.is === 'failed' && (state.error.hopeless || (!this.#everConnected && state.refusals >= REFUSALS)),
    )
  }

  /** Why no node can be used. `unusable` says what is wrong with a connected one. */
  giveUp(unusable: (name: string) => Reason): GivenUp {
    const [first, ...rest] = [...this.#states].map(([name, state]) => problemOf(name, state, unusable))
    if (first === undefined) throw new Error('no node is called')
    return describe([first, ...rest])
  }
}

function problemOf(name: string, state: State, unusable: (name: string) => Reason): Problem {
  switch (state.is) {
    case 'called':
      return { name, reason: reasonOf('', 'it has not answered yet'), error: undefined, absent: false }
    case 'connected':
      return { name, reason: unusable(name), error: undefined, absent: false }
    case 'lost': {
      const reason = reasonOf(`it was lost (${state.reason}) and has not reconnected`, 'it was lost')
      return { name, reason, error: undefined, absent: true }
    }
    case 'failed':
      return { name, reason: state.error.reason, error: state.error, absent: state.error.nobodyThere }
  }
}

function describe(problems: Problems): GivenUp {
  const list = problems.map(({ name, reason }) => `${name}: ${reason}`).join('; ')
  const errors = problems.flatMap(({ error }) => error ?? [])
  const advice = problems.every(({ absent }) => absent)
    ? '. Start one there with `manyworlds node --listen HOST:PORT`'
    : [...new Set(errors.flatMap(({ advice }) => advice ?? []))].map((text) => `. ${text}`).join('')
  const refused = errors.some(({ hopeless, unproved }) => hopeless || unproved)
  return {
    code: refused ? 'NODE_REFUSED' : 'NODES_UNREACHABLE',
    text: reasonOf(`no node can be used: ${list}${advice}`, 'no node can be used'),
  }
}
