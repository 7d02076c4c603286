import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type CacheIdentity, cacheKey } from '../../src/models/driver/cache-key.ts'

const call: CacheIdentity = {
  ...{
    server: 'http://localhost:8000/v1',
    model: 'small',
    path: '/chat/completions',
    seed: 0,
    rollout: 1,
    occurrence: 0,
  },
  body: '{"model":"small","messages":[{"role":"user","content":"hi"}],"temperature":0.5}',
}
const key = (change: Partial<CacheIdentity> = {}) => cacheKey({ ...call, ...change }).toString('hex')

describe('the key of a cached answer', () => {
  it('is always the same 32 bytes for the same call', () => {
    expect(cacheKey(call)).toHaveLength(32)
    // It is in stores: if this changes, all cached answers are lost. Increase KEY_VERSION then.
    expect(key()).toBe('2dfa098705758febc7fa06ff4b33148d1d8da6e04de345aedad76335e7f03211')
  })

  it.each<[string, Partial<CacheIdentity>]>([
    ['server', { server: 'http://localhost:8001/v1' }],
    ['model', { model: 'large' }],
    ['path', { path: '/completions' }],
    ['seed', { seed: 1 }],
    ['rollout', { rollout: 2 }],
    ['occurrence', { occurrence: 1 }],
    ['temperature', { body: call.body.replace('0.5', '0.6') }],
    ['message', { body: call.body.replace('hi', 'ho') }],
    ['field', { body: call.body.replace('}]', ',"name":"x"}]') }],
  ])('is another for another %s', (_what, change) => {
    expect(key(change)).not.toBe(key())
  })

  it('does not depend on spaces, the order of fields, escapes, or a slash after the base URL', () => {
    const body = `{ "temperature": 0.50, "messages": [{"content":"\\u0068i", "role":"user"}], "model":"small" }`
    expect(key({ body })).toBe(key())
    expect(key({ server: `${call.server}/` })).toBe(key())
  })

  it('does not take one field for the next', () => {
    expect(key({ model: 'a', path: 'bc' })).not.toBe(key({ model: 'ab', path: 'c' }))
    expect(key({ seed: 1, rollout: 11 })).not.toBe(key({ seed: 11, rollout: 1 }))
  })

  it('depends on the order of messages', () => {
    expect(key({ body: '{"messages":["a","b"]}' })).not.toBe(key({ body: '{"messages":["b","a"]}' }))
  })

  it.each([
    ['numbers beyond 2^53', '{"seed":9007199254740993}', '{"seed":9007199254740992}'],
    ['numbers beyond all', '{"a":1e999}', '{"a":null}'],
    ['texts that are no JSON', '{"a":', '{"b":'],
    ['JSON and its text', '{"a":1}', '"{\\"a\\":1}"'],
    ['nesting that is too deep', '['.repeat(200_000) + ']'.repeat(200_000), '['.repeat(200_001) + ']'.repeat(200_001)],
    ['fields of prototypes', '{"__proto__":{"a":1}}', '{}'],
  ])('tells %s apart', (_what, a, b) => {
    expect(key({ body: a })).not.toBe(key({ body: b }))
  })

  it('is the same for the same JSON in any order, and only for that', () => {
    const reversed = (value: unknown): unknown => {
      if (typeof value !== 'object' || value === null) return value
      if (Array.isArray(value)) return value.map(reversed)
      return Object.fromEntries(
        Object.entries(value)
          .reverse()
          .map(([name, inner]) => [name, reversed(inner)]),
      )
    }
    const isPlain = (json: string) => !/\d{16}/.test(json) && !json.includes('__proto__')
    const json = fc
      .jsonValue()
      .map((value) => JSON.stringify(value))
      .filter(isPlain)
    fc.assert(
      fc.property(json, json, (a, b) => {
        expect(key({ body: JSON.stringify(reversed(JSON.parse(a)), undefined, 2) })).toBe(key({ body: a }))
        expect(key({ body: a }) === key({ body: b })).toBe(isDeepStrictEqual(JSON.parse(a), JSON.parse(b)))
      }),
    )
  })
})
