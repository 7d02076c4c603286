import type { ServiceCall } from '../../executor/service.ts'
import { type CacheIdentity, cacheKey } from './cache-key.ts'
import { cacheMiss } from './cache-miss.ts'
import { withNewId } from './completion-id.ts'

/** `true`: cached answers are used, other calls are made and stored. `'replay'`: no model is called. */
export type CacheMode = boolean | 'replay'

/** A server's reply. Plain data. */
export interface CachedReply {
  readonly status: number
  readonly body: string
  readonly headers: Readonly<Record<string, string>>
}

/** A new reply. `storable: false`: it must not be stored, for example because it contains a secret. */
export interface MadeReply extends CachedReply {
  readonly storable?: boolean
}

/** Where replies are stored. */
export interface CacheStore {
  read(key: Uint8Array): Promise<CachedReply | undefined>
  /** Resolves when the reply is durable. An existing reply with this key is kept. */
  write(key: Uint8Array, model: string, reply: CachedReply): Promise<void>
}

/** The result for the caller. `cached`: no call was made for it. */
export interface CacheAnswer {
  readonly reply: CachedReply
  readonly cached: boolean
}

/**
 * Replies by request. There is one call in flight per key: concurrent requests wait for its reply. If it fails, only
 * its own caller gets the error; the waiting ones make their own calls, one at a time.
 */
export class ReplyCache {
  readonly #store: CacheStore
  readonly #mode: CacheMode
  /** By key: resolves when the call in flight has ended, with its reply if it may be shared. Never rejects. */
  readonly #flights = new Map<string, Promise<CachedReply | undefined>>()

  constructor(store: CacheStore, mode: CacheMode) {
    this.#store = store
    this.#mode = mode
  }

  /** A new reply is stored before it is returned. Only successes are stored: status 2xx with a body. */
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

  /** The call in flight may wait for a permit, and its waiters with it. */
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

  /** The call is registered before anything is awaited, so that there is only one per key. */
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
    // A call may ignore its signal, but its waiters must not hang.
    const made = await unlessAborted(make(), signal)
    const reply = plain(made)
    if (made.storable === false || !isSuccess(made)) return { reply, cached: false, shared: false }
    await this.#store.write(key, identity.model, reply)
    // Another driver may have been faster. A later run gets its reply, so use it here too.
    return { reply: (await this.#store.read(key)) ?? reply, cached: false, shared: true }
  }
}

const isSuccess = ({ status, body }: CachedReply) => status >= 200 && status < 300 && body !== ''

const plain = ({ status, body, headers }: CachedReply): CachedReply => ({ status, body, headers })

const again = ({ status, body, headers }: CachedReply): CacheAnswer => ({
  reply: { status, body: withNewId(body), headers },
  cached: true,
})

/** The promise's result, or the signal's reason, whichever comes first. */
function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason)
    if (signal.aborted) abort()
    signal.addEventListener('abort', abort, { once: true })
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })
}
