import type { ServiceCall } from '../../executor/service.ts'
import type { Redactor } from '../../redaction/redactor.ts'
import type { CallRecord } from '../protocol.ts'
import type { ReplyCache } from './cache.ts'
import type { CacheIdentity } from './cache-key.ts'

/** A call that was made. */
export interface MadeCall {
  readonly body: string
  readonly ms: number
  readonly retries: number
}

export type Called = MadeCall & Pick<CallRecord, 'cached'>

/** Gives answers from the cache of a run, if it has one; else the call is made. */
export class CachedCalls {
  readonly #cache: ReplyCache | undefined
  readonly #redactor: Redactor | undefined

  constructor(cache: ReplyCache | undefined, redactor: Redactor | undefined) {
    this.#cache = cache
    this.#redactor = redactor
  }

  /** Whether calls must pass here. */
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

  /** What has a secret in it is not kept. */
  #isSecret(text: string): boolean {
    return this.#redactor !== undefined && this.#redactor.text(text) !== text
  }
}
