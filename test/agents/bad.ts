import { defineAgent } from 'manyworlds'

/** Answers that cannot be sent, by name. */
export const unsendable = defineAgent({
  name: 'unsendable',
  run: async (kind: 'function' | 'promise' | 'symbol' | 'weak' | 'getter' | 'keys') => {
    switch (kind) {
      case 'function':
        return { deep: [{ callback: () => 1 }] }
      case 'promise':
        return { later: Promise.resolve(1) }
      case 'symbol':
        return Symbol('s')
      case 'weak':
        return new Map([['cache', new WeakMap()]])
      case 'getter':
        return {
          get trap() {
            throw new Error('sprung')
          },
        }
      case 'keys':
        return Object.fromEntries(Array.from({ length: 1_000_001 }, (_, n) => [`key-${n}`, n]))
    }
  },
})

/** Params that cannot be sent. */
export const badParams = defineAgent({ name: 'bad-params', params: { callback: () => 1 }, run: async () => 1 })
