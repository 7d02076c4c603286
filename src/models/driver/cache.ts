import type { ServiceCall } from '../../executor/service.ts'
import { type CacheIdentity, cacheKey } from './cache-key.ts'
import { cacheMiss } from './cache-miss.ts'
import { withNewId } from './completion-id.ts'

/** `true`: answers that are there are used, others are asked for and stored. `'replay'`: no model is called. */
export type CacheMode = boolean | 'replay'

/** A reply of a model's server. Plain data. */
export interface CachedReply {
  readonly status: number
  readonly body: string
  readonly headers: Readonly<Record<string, string>>
}

/** A reply that was just made. `storable: false`: it must not be stored, for example because it has a secret. */
export interface MadeReply extends CachedReply {
  readonly storable?: boolean
}

/** Where replies are kept. */
export interface CacheStore {
  read(key: Uint8Array): Promise<CachedReply | undefined>
  /** Resolves when the reply is safe. If there is one with this key already, that one stays. */
  write(key: Uint8Array, model: string, reply: CachedReply): Promise<void>
}

/** What the asker gets. `cached`: it made no call. */
export interface CacheAnswer {
  readonly reply: CachedReply
  readonly cached: boolean
}

/**
 * Replies of models, by what was asked. Per key one call is under way at a time: whoever asks meanwhile waits for it, and
 * gets its reply. If it fails, only its own asker gets the failure; those who wait make calls of their own, one at a time.
 */
export class ReplyCache {
  readonly #store: CacheStore
  readonly #mode: CacheMode
  /** By key: resolves when the flight is over, with its reply if others may have it. Never rejects. */
  readonly #flights = new Map<string, Promise<CachedReply | undefined>>()

  constructor(store: CacheStore, mode: CacheMode) {
    this.#store = store
    this.#mode = mode
  }

  /** A reply that was made now is stored before anybody gets it. Only successes are stored: status 2xx, with a body. */
  async get(
    identity: CacheIdentity,
    make: () => Promise<MadeReply>,
    { signal, waiting }: Pick<ServiceCall, 'signal' | 'waiting'>,
  ): Promise<CacheAnswer> {
    signal.throwIfAborted()
    if (this.#mode === false) return { reply: plain(await make()), cached: false }
    const key = cacheKey(identity)
    const name = key.toString('hex')
    for (;;) {
      const flight = this.#flights.get(name)
      if (flight === undefined) return await this.#fly(name, () => this.#find(key, identity, make, signal))
      const reply = await this.#join(flight, signal, waiting)
      if (reply !== undefined) return again(reply)
    }
  }

  /** The flight may wait for its turn. Whoever waits for the flight waits for that too. */
  async #join(
    flight: Promise<CachedReply | undefined>,
    signal: AbortSignal,
    waiting: ServiceCall['waiting'],
  ): Promise<CachedReply | undefined> {
    waiting(true)
    try {
      return await unlessAborted(flight, signal)
    } finally {
      waiting(false)
    }
  }

  /** Nothing is awaited before the flight has its place, so that there is one per key. */
  async #fly(name: string, find: () => Promise<CacheAnswer & { shared: boolean }>): Promise<CacheAnswer> {
    const { promise, resolve } = Promise.withResolvers<CachedReply | undefined>()
    this.#flights.set(name, promise)
    let reply: CachedReply | undefined
    try {
      const found = await find()
      if (found.shared) reply = found.reply
      return found.cached ? again(found.reply) : { reply: found.reply, cached: false }
    } finally {
      this.#flights.delete(name)
      resolve(reply)
    }
  }

  async #find(
    key: Buffer,
    identity: CacheIdentity,
    make: () => Promise<MadeReply>,
    signal: AbortSignal,
  ): Promise<CacheAnswer & { shared: boolean }> {
    const known = await this.#store.read(key)
    if (known !== undefined) return { reply: known, cached: true, shared: true }
    if (this.#mode === 'replay') throw cacheMiss(identity)
    signal.throwIfAborted()
    // A call may ignore its signal; those who wait for it don't.
    const made = await unlessAborted(make(), signal)
    const reply = plain(made)
    if (made.storable === false || !isSuccess(made)) return { reply, cached: false, shared: false }
    await this.#store.write(key, identity.model, reply)
    // Another driver may have been faster. Its reply is the one that a later run gets, so use it here too.
    return { reply: (await this.#store.read(key)) ?? reply, cached: false, shared: true }
  }
}

const isSuccess = ({ status, body }: CachedReply) => status >= 200 && status < 300 && body !== ''

const plain = ({ status, body, headers }: CachedReply): CachedReply => ({ status, body, headers })

const again = ({ status, body, headers }: CachedReply): CacheAnswer => ({
  reply: { status, body: withNewId(body), headers },
  cached: true,
})

/** The promise's outcome, or the reason of the signal, whichever comes first. */
function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason)
    if (signal.aborted) abort()
    signal.addEventListener('abort', abort, { once: true })
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })
}
