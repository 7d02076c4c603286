import { hash } from 'node:crypto'
import type { AgentRef, AnyAgent } from '../agent.ts'
import { ManyworldsError } from '../errors.ts'
import type { BundlePlace } from '../protocol/messages.ts'
import { lastPackedSize, NotPackable, pack } from '../protocol/pack.ts'
import type { TaskEntry } from './task-entry.ts'
import type { WorkerHandle } from './worker-handle.ts'

/** An agent as the executor knows it. Its tasks are held until a first worker has loaded its code. */
export interface AgentState {
  readonly key: number
  readonly ref: AgentRef
  readonly params: unknown
  readonly size: number
  loaded: boolean
  /** The worker that is trying to load it first. */
  probedBy: WorkerHandle | undefined
  /** Workers that could not load what another had loaded. */
  failures: number
  readonly held: TaskEntry[]
  /** Its tasks are refused: the script does not stop at its first run, so workers would do the driver's work. */
  refused: ManyworldsError | undefined
  /** Moving average of its tasks' duration in ms; 0: none has ended. */
  meanMs: number
  /** Where workers on other machines find its code, once it is there. */
  place: BundlePlace | undefined
  /** Its code is on its way. */
  shipping: boolean
}

/** Agents by module, name and params instead of object identity: `withParams` in a loop makes many equal ones. */
export class AgentTable {
  readonly #byObject = new WeakMap<AnyAgent, AgentState>()
  readonly #byContent = new Map<string, AgentState>()
  readonly #byKey: AgentState[] = []

  of(agent: AnyAgent): AgentState {
    let state = this.#byObject.get(agent)
    if (state === undefined) {
      state = this.find(agent.ref, packParams(agent))
      this.#byObject.set(agent, state)
    }
    return state
  }

  find(ref: AgentRef, params: unknown): AgentState {
    const size = lastPackedSize(params)
    const content =
      params instanceof Uint8Array || params instanceof String
        ? hash('sha256', params.valueOf() as Uint8Array | string)
        : JSON.stringify(params, exact)
    const id = [ref.module, ref.name, ref.fingerprint, content].join('\0')
    let state = this.#byContent.get(id)
    if (state === undefined) {
      state = {
        ...{ key: this.#byKey.length, ref, params, size, loaded: false, probedBy: undefined, failures: 0, held: [] },
        ...{ place: undefined, shipping: false, meanMs: 0, refused: undefined },
      }
      this.#byContent.set(id, state)
      this.#byKey.push(state)
    }
    return state
  }

  [Symbol.iterator](): Iterator<AgentState> {
    return this.#byKey[Symbol.iterator]()
  }

  byKey(key: number): AgentState | undefined {
    return this.#byKey[key]
  }
}

/** The params of an agent, ready to travel. */
export function packParams(agent: AnyAgent): unknown {
  try {
    return pack(agent.params)
  } catch (error) {
    if (!(error instanceof NotPackable)) throw error
    throw new ManyworldsError(
      'AGENT_INVALID',
      `the params of agent '${agent.name}' cannot be sent to workers: ${error.message}; pass plain data, and create the rest in \`setup\``,
    )
  }
}

// JSON alone cannot tell undefined, NaN and 1n apart.
const exact = (_key: string, value: unknown) =>
  typeof value === 'bigint' || value === undefined || (typeof value === 'number' && !Number.isFinite(value))
    ? `\0${typeof value}${String(value)}`
    : value
