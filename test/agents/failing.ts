import { defineAgent } from 'manyworlds'

class QuotaError extends RangeError {
  override readonly name = 'QuotaError'
  readonly remaining = 0
}

/** Whatever can be thrown. */
export const thrower = defineAgent({
  name: 'thrower',
  run: async (what: 'null' | 'undefined' | 'string' | 'object' | 'cause' | 'subclass' | 'function' | 'sync-like') => {
    switch (what) {
      case 'null':
        throw null
      case 'undefined':
        throw undefined
      case 'string':
        throw 'just text'
      case 'object':
        throw { status: 429, retry: [1, 2] }
      case 'cause':
        throw new Error('the outer', { cause: new TypeError('the inner') })
      case 'subclass':
        throw new QuotaError('no tokens left')
      case 'function':
        throw () => 1
      case 'sync-like':
        throw Object.assign(new Error('with extras'), { code: 'ECONNRESET', callback: () => 1 })
    }
  },
})

/** Throws before it ever returns a promise. */
export const throwsAtOnce = defineAgent({
  name: 'throws-at-once',
  run: (input: string): string => {
    throw new Error(`at once: ${input}`)
  },
})

/** Fails until the attempt that it is told; answers what each attempt could know. */
export const succeedsAt = defineAgent({
  name: 'succeeds-at',
  run: async (attempt: number, ctx) => {
    ctx.step({ action: `attempt ${ctx.attempt}` })
    console.log(`attempt ${ctx.attempt}`)
    if (ctx.attempt < attempt) throw new Error(`not yet: ${ctx.idempotencyKey} ${ctx.random()}`)
    return { attempt: ctx.attempt, key: ctx.idempotencyKey, random: ctx.random() }
  },
})

/** Never ends, and does not listen. */
export const deaf = defineAgent({ name: 'deaf', run: () => new Promise<never>(() => {}) })

/** Blocks its event loop. */
export const blocker = defineAgent({
  name: 'blocker',
  run: (): never => {
    for (;;);
  },
})
