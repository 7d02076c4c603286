import type { ServiceCall } from '../../executor/service.ts'
import type { Redactor } from '../../redaction/redactor.ts'
import type { CallRecord } from '../protocol.ts'
import type { ReplyCache } from './cache.ts'
import type { CacheIdentity } from './cache-key.ts'

/** A completed call. */
export interface MadeCall {
  readonly body: string
  readonly ms: number
  readonly retries: number
}

export type Called = MadeCall & Pick<CallRecord, 'cached'>

/** Answers calls from the run's cache, if it has one; otherwise makes the call. */
export class CachedCalls {
  readonly #cache: ReplyCache | undefined
  readonly #redactor: Redactor | undefined

  constructor(cache: ReplyCache | undefined, redactor: Redactor | undefined) {
    this.#cache = cache
    this.#redactor = redactor
  }

  /** Whether the run has a cache. */
  get isOn(): boolean {
    return this.#cache !== undefined
  }

  async call(
    call: ServiceCall,
    asked: Pick<CacheIdentity, 'server' | 'model' | 'path' | 'body'>,
    make: () => Promise<MadeCall>,
  ): Promise<Called> {
    if (this.#cache === undefined) return { ...(await make()), cached: false }
    const { lease, occurrence } = call
    const { run, options } = lease.entry
    let made: MadeCall | undefined
    const identity = { ...asked, seed: run.options.seed, rollout: options.rollout ?? 1, occurrence }
    const { reply, cached } = await this.#cache.get(
      identity,
      async () => {
        made = await make()
        const storable = !this.#isSecret(asked.body) && !this.#isSecret(made.body)
        return { status: 200, body: made.body, headers: {}, storable }
      },
      { signal: call.signal, waiting: (isWaiting) => call.waiting(isWaiting) },
    )
    return { body: reply.body, ms: made?.ms ?? 0, retries: made?.retries ?? 0, cached }
  }

  /** Bodies that contain a secret are not stored. */
  #isSecret(text: string): boolean {
    return this.#redactor !== undefined && this.#redactor.text(text) !== text
  }
}
