import { setImmediate as turn } from 'node:timers/promises'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type CachedReply, type CacheStore, type MadeReply, ReplyCache } from '../../src/models/driver/cache.ts'
import type { CacheIdentity } from '../../src/models/driver/cache-key.ts'
import { refused } from '../refused.ts'

/** A store in memory, with the promises of the real one. */
class MemoryStore implements CacheStore {
  readonly replies = new Map<string, CachedReply>()

  async read(key: Uint8Array): Promise<CachedReply | undefined> {
    await turn()
    return this.replies.get(Buffer.from(key).toString('hex'))
  }

  async write(key: Uint8Array, _model: string, reply: CachedReply): Promise<void> {
    await turn()
    const name = Buffer.from(key).toString('hex')
    if (!this.replies.has(name)) this.replies.set(name, reply)
  }
}

const asked = (question: string): CacheIdentity => ({
  ...{ server: 'http://localhost/v1', model: 'small', path: '/chat/completions', seed: 0, rollout: 1, occurrence: 0 },
  body: JSON.stringify({ messages: [{ role: 'user', content: question }] }),
})
const reply = (text: string, status = 200): CachedReply => ({
  ...{ status, headers: { 'x-request': '1' } },
  body: JSON.stringify({ id: `chatcmpl-${text}`, choices: [{ message: { content: text } }] }),
})
const never = () => Promise.reject(new Error('no call was to be made'))
const { signal } = new AbortController()

const contentOf = ({ body }: CachedReply) =>
  (JSON.parse(body) as { choices: { message: { content: string } }[] }).choices[0]!.message.content
const idOf = ({ body }: CachedReply) => (JSON.parse(body) as { id: string }).id

describe('a cached answer', () => {
  it('is given again without a call, with an id of its own', async () => {
    const store = new MemoryStore()
    const first = await new ReplyCache(store, true).get(asked('q'), async () => reply('a'), signal)
    expect(first).toEqual({ reply: reply('a'), cached: false })
    for (const mode of [true, 'replay'] as const) {
      const again = await new ReplyCache(store, mode).get(asked('q'), never, signal)
      expect(again).toMatchObject({ cached: true, reply: { status: 200, headers: { 'x-request': '1' } } })
      expect(contentOf(again.reply)).toBe('a')
      expect(idOf(again.reply)).not.toBe(idOf(first.reply))
    }
  })

  it('is neither read nor written without a cache', async () => {
    const store = new MemoryStore()
    await new ReplyCache(store, true).get(asked('q'), async () => reply('a'), signal)
    const { reply: second, cached } = await new ReplyCache(store, false).get(asked('q'), async () => reply('b'), signal)
    expect([contentOf(second), cached, store.replies.size]).toEqual(['b', false, 1])
  })

  it.each<[string, MadeReply]>([
    ['a status that is no success', reply('a', 429)],
    ['a redirect', reply('a', 304)],
    ['an empty body', { ...reply('a'), body: '' }],
    ['what must not be stored', { ...reply('a'), storable: false }],
  ])('is not made from %s', async (_what, made) => {
    const store = new MemoryStore()
    const cache = new ReplyCache(store, true)
    const { status, headers, body } = made
    expect(await cache.get(asked('q'), async () => made, signal)).toEqual({
      ...{ reply: { status, headers, body }, cached: false },
    })
    expect(store.replies.size).toBe(0)
    expect(contentOf((await cache.get(asked('q'), async () => reply('b'), signal)).reply)).toBe('b')
  })

  it('that another driver stored meanwhile is used instead of the own one', async () => {
    const store = new MemoryStore()
    const cache = new ReplyCache(store, true)
    const made = cache.get(
      asked('q'),
      async () => {
        await new ReplyCache(store, true).get(asked('q'), async () => reply('theirs'), signal)
        return reply('ours')
      },
      signal,
    )
    expect(contentOf((await made).reply)).toBe('theirs')
  })

  it('is not given before it is stored', async () => {
    let stored = false
    const slow: CacheStore = {
      read: async () => undefined,
      write: async () => {
        for (let i = 0; i < 20; i++) await turn()
        stored = true
      },
    }
    const cache = new ReplyCache(slow, true)
    const gets = [1, 2].map(async () => {
      await cache.get(asked('q'), async () => reply('a'), signal)
      expect(stored).toBe(true)
    })
    await Promise.all(gets)
  })

  it('that cannot be stored is an error, and the next asker tries again', async () => {
    let writes = 0
    const broken: CacheStore = {
      read: async () => undefined,
      write: async () => {
        if (++writes === 1) throw new Error('disk')
      },
    }
    const cache = new ReplyCache(broken, true)
    const gets = [1, 2].map(() => cache.get(asked('q'), async () => reply('a'), signal))
    expect((await Promise.allSettled(gets)).map(({ status }) => status)).toEqual(['rejected', 'fulfilled'])
  })
})

describe('replay', () => {
  it('fails where no answer is there, and names the model, the question and what to do', async () => {
    const cache = new ReplyCache(new MemoryStore(), 'replay')
    const question = `What is\nthe \u001b[31mcapital of ${'x'.repeat(200)}?`
    const error = await refused(() => cache.get(asked(question), never, signal), 'CACHE_MISS', "model 'small'")
    expect(error.message).toContain('"What is\\nthe \\x1b[31mcapital of xxx')
    expect(error.message).toContain('cache: true')
    expect(error.message.split('\n')).toHaveLength(1)
    expect(error.message.length).toBeLessThan(600)
  })

  it.each([
    [
      'parts',
      { messages: [{ role: 'user', content: [{ type: 'image' }, { type: 'text', text: 'Which?' }] }] },
      '"Which?"',
    ],
    ['a prompt', { prompt: 'Once upon' }, '"Once upon"'],
    ['token ids', { prompt: [1, 2, 3] }, '"{"prompt":[1,2,3]}"'],
    [
      'a tool result after it',
      {
        messages: [
          { role: 'user', content: 'Add' },
          { role: 'tool', content: '3' },
        ],
      },
      '"Add"',
    ],
    ['wrong messages', { messages: [null, 7] }, '"{"messages":[null,7]}"'],
  ])('shows a question of %s', async (_what, body, shown) => {
    const cache = new ReplyCache(new MemoryStore(), 'replay')
    const identity = { ...asked(''), body: JSON.stringify(body) }
    await refused(() => cache.get(identity, never, signal), 'CACHE_MISS', shown)
  })
})

describe('askers of the same', () => {
  it('wait for one call, and each gets an id of its own', async () => {
    const cache = new ReplyCache(new MemoryStore(), true)
    let calls = 0
    const make = async () => {
      calls++
      for (let i = 0; i < 5; i++) await turn()
      return reply('a')
    }
    const answers = await Promise.all(Array.from({ length: 50 }, () => cache.get(asked('q'), make, signal)))
    expect(calls).toBe(1)
    expect(answers.filter(({ cached }) => !cached)).toHaveLength(1)
    expect(new Set(answers.map((answer) => idOf(answer.reply))).size).toBe(50)
  })

  it('are not held up by a call whose task was cancelled, even if it ignores that', async () => {
    const cache = new ReplyCache(new MemoryStore(), true)
    const gone = new AbortController()
    const first = cache.get(asked('q'), () => new Promise(() => {}), gone.signal)
    const second = cache.get(asked('q'), async () => reply('b'), signal)
    for (let i = 0; i < 5; i++) await turn()
    gone.abort(new Error('cancelled'))
    await expect(first).rejects.toThrow('cancelled')
    expect(contentOf((await second).reply)).toBe('b')
  })

  it('stop waiting when they are cancelled themselves, and the call goes on', async () => {
    const cache = new ReplyCache(new MemoryStore(), true)
    const { promise, resolve } = Promise.withResolvers<CachedReply>()
    const first = cache.get(asked('q'), () => promise, signal)
    const gone = new AbortController()
    const second = cache.get(asked('q'), never, gone.signal)
    await turn()
    gone.abort(new Error('cancelled'))
    await expect(second).rejects.toThrow('cancelled')
    resolve(reply('a'))
    expect(contentOf((await first).reply)).toBe('a')
    await expect(cache.get(asked('q'), never, gone.signal)).rejects.toThrow('cancelled')
  })

  /** What the n-th asker's call does, if it comes to one. */
  type Call = { readonly turns: number; readonly ends: 'success' | '500' | 'throws' | 'hangs' }
  interface Asker {
    readonly question: number
    readonly arrives: number
    readonly cancelledAt: number | undefined
    readonly call: Call
  }

  it('any number, in any order, with any failures: one call at a time, none after a success, nobody hangs', async () => {
    const call = fc.record({
      turns: fc.nat(6),
      ends: fc.constantFrom<Call['ends']>('success', 'success', '500', 'throws', 'hangs'),
    })
    const asker: fc.Arbitrary<Asker> = fc.record({
      ...{ question: fc.nat(2), arrives: fc.nat(12), cancelledAt: fc.option(fc.nat(25), { nil: undefined }), call },
    })
    await fc.assert(
      fc.asyncProperty(fc.array(asker, { minLength: 1, maxLength: 20 }), async (askers) => {
        const store = new MemoryStore()
        const cache = new ReplyCache(store, true)
        const flying = new Map<number, number>()
        const succeeded = new Map<number, string>()
        const one = async ({ question, arrives, cancelledAt, call: { turns, ends } }: Asker, number: number) => {
          for (let i = 0; i < arrives; i++) await turn()
          const own = new AbortController()
          // A call that hangs ends when its task is cancelled.
          const end = cancelledAt ?? (ends === 'hangs' ? 30 : undefined)
          const cancel = (async () => {
            for (let i = 0; end !== undefined && i < end; i++) await turn()
            if (end !== undefined) own.abort(new Error('cancelled'))
          })()
          const make = async () => {
            expect(flying.get(question) ?? 0, 'calls at once').toBe(0)
            expect(succeeded.get(question), 'a call after a success').toBe(undefined)
            flying.set(question, 1)
            try {
              for (let i = 0; i < turns && !own.signal.aborted; i++) await turn()
              while (ends === 'hangs' && !own.signal.aborted) await turn()
              own.signal.throwIfAborted()
              if (ends === 'throws') throw new Error(`call ${number}`)
              if (ends === 'success') succeeded.set(question, `answer ${number}`)
              return reply(`answer ${number}`, ends === '500' ? 500 : 200)
            } finally {
              flying.set(question, 0)
            }
          }
          const outcome = await cache.get(asked(String(question)), make, own.signal).then(
            ({ reply: got, cached }) => ({ got, cached, error: undefined }),
            (error: Error) => ({ got: undefined, cached: false, error: error.message }),
          )
          await cancel
          return { question, number, ends, isCancelled: own.signal.aborted, ...outcome }
        }
        const outcomes = await Promise.all(askers.map(one))
        for (const { question, number, got, error, ends, isCancelled, cached } of outcomes) {
          if (got?.status === 200) expect(contentOf(got)).toBe(succeeded.get(question))
          // A failure goes to its own asker only.
          else if (got) expect([contentOf(got), ends, cached]).toEqual([`answer ${number}`, '500', false])
          else if (error !== `call ${number}`) expect([error, isCancelled]).toEqual(['cancelled', true])
        }
        expect(store.replies.size).toBe(succeeded.size)
      }),
      { numRuns: 300 },
    )
  })
})
