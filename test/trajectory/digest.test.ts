import { hash } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { seeded } from '../../src/random.ts'
import { canonical } from '../../src/trajectory/canonical.ts'
import { digestOf, TrajectoryDigest } from '../../src/trajectory/digest.ts'
import type { Episode } from '../../src/trajectory/episode.ts'
import type { ModelStep, Step, ToolStep } from '../../src/trajectory/step.ts'
import { cpuMs } from '../support/cpu-ms.ts'
import { data, plans, stepsOf } from './arbitrary.ts'

const digest = (steps: readonly Step[], episode?: Episode, status: 'success' | 'failed' = 'success') =>
  digestOf(steps, { status, episode })

/** The same data, with the keys of every object in another order. */
function shuffled(value: unknown, random: () => number): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map((item) => shuffled(item, random))
  if (Object.getPrototypeOf(value) !== Object.prototype) return value
  const entries = Object.entries(value).map(([key, item]): [string, unknown] => [key, shuffled(item, random)])
  return Object.fromEntries(entries.toSorted(() => random() - 0.5))
}

const plain = plans.filter(({ order }) => order.length > 0)

describe('a canonical text', () => {
  test('is the same for the same data, whatever the order of keys', () => {
    fc.assert(
      fc.property(data, fc.nat(), (value, seed) => {
        expect(canonical(shuffled(value, seeded(seed)))).toBe(canonical(value))
        expect(canonical(structuredClone(value))).toBe(canonical(value))
      }),
      { numRuns: 1000 },
    )
  })

  test('is JSON where JSON is exact', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const exact = JSON.parse(JSON.stringify(value))
        expect(JSON.parse(canonical(exact))).toEqual(exact)
      }),
    )
  })

  test('tells apart what differs', () => {
    const circle: unknown[] = []
    circle.push(circle)
    const values = [
      ...[0, -0, Number.NaN, 1 / 0, -1 / 0, 1, '1', 1n, true, null, undefined, '', 'null', 'NaN', [], {}, [[]], [{}]],
      ...[[undefined], [null], new Array(1), { a: undefined }, { a: null }, { a: 1, b: 2 }, { a: 2, b: 1 }],
      ...[
        new Date(0),
        new Date(1),
        new Date(Number.NaN),
        new Map(),
        new Map([[1, 2]]),
        new Set(),
        new Set([1]),
        /a/,
        /a/g,
      ],
      ...[new Int32Array([1]), new Uint32Array([1]), new Float64Array([0]), new Float64Array([-0]), new ArrayBuffer(1)],
      ...[
        new Float64Array([Number.NaN]),
        [1],
        ['1'],
        '\ud800',
        '\ud801',
        new Error('a'),
        new Error('b'),
        circle,
        [[circle]],
      ],
      ...['{"a":1}', { '{"a': 1 }, { a: [1] }, { a: { b: 1 } }, { 2: 0, 10: 0 }, { 10: 0 }, { toJSON: 1 }],
    ]
    expect(new Set(values.map(canonical)).size).toBe(values.length)
  })

  test('does not care which NaN it is', () => {
    const odd = new Float64Array(new BigUint64Array([0xfff8_0000_0000_0001n]).buffer)
    expect(canonical(odd)).toBe(canonical(new Float64Array([Number.NaN])))
  })

  test('is made in bounded time, of deep and of tangled values', () => {
    let deep: unknown = 'bottom'
    for (let i = 0; i < 900; i++) deep = { z: 1, deep }
    let tangled: unknown = 'bottom'
    for (let i = 0; i < 60; i++) tangled = { z: tangled, a: tangled }
    const self: Record<string, unknown> = {}
    for (const key of 'zyxwv') self[key] = self
    const began = cpuMs()
    expect(canonical(deep)).toContain('bottom')
    expect(canonical(tangled)).toContain('Cut')
    expect(canonical(self)).toBe('{"v":Above(1),"w":Above(1),"x":Above(1),"y":Above(1),"z":Above(1)}')
    expect(cpuMs() - began).toBeLessThan(20_000)
  })
})

describe('a digest', () => {
  test('is the SHA-256 of a text that stays as it is', () => {
    const steps: Step[] = [
      { index: 0, atMs: 1, kind: 'note', action: 'go', observation: { b: 1, a: [-0] }, reward: 0.5, text: 'no' },
    ]
    const content = 'note\n"go"\n{"a":[-0],"b":1}\n0.5\n'
    const text = `manyworlds.digest.1\n[0]${content.length}:${content}\nsuccess\n"truncated"\n"maxSteps"\n"seen"\n0.5\nnull\n`
    const ending = { kind: 'truncated', by: 'maxSteps' } as const
    const episode = { ending, finalObservation: 'seen', reward: 0.5, success: null }
    expect(digest(steps, episode)).toBe(hash('sha256', text))
  })

  test('is the same, however branches interleave and keys are ordered', () => {
    fc.assert(
      fc.property(plain, fc.nat(), (plan, seed) => {
        const random = seeded(seed)
        const usual = digest(stepsOf(plan))
        const other = stepsOf(plan, random).map((step) => shuffled(step, random) as Step)
        expect(digest(other)).toBe(usual)
      }),
      { numRuns: 1000 },
    )
  })

  test('is the same, whatever times, places, versions, usage and ids of servers are', () => {
    fc.assert(
      fc.property(plain, fc.nat(1e6), (plan, salt) => {
        const steps = stepsOf(plan)
        expect(digest(steps.map((step) => elsewhere(step, salt)))).toBe(digest(steps))
      }),
      { numRuns: 500 },
    )
  })

  test('is another, if anything changes that an agent did or saw', () => {
    fc.assert(
      fc.property(plain, fc.nat(), (plan, at) => {
        const steps = stepsOf(plan)
        const usual = digest(steps)
        const changed = steps[at % steps.length]!
        for (const change of changes(changed)) {
          const other = steps.map((step) => (step === changed ? ({ ...step, ...change } as Step) : step))
          expect(digest(other), JSON.stringify(Object.keys(change))).not.toBe(usual)
        }
        expect(digest(steps.filter((step) => step !== changed || step.opens)) === usual).toBe(
          changed.opens !== undefined,
        )
      }),
      { numRuns: 500 },
    )
  })

  test('does not depend on which of several tools came back first', () => {
    const calls = ['a', 'b', 'c'].map((id) => ({ id, name: id, raw: '{}' }))
    const first = model({ reply: { role: 'assistant', content: '', calls, wire: '' } })
    const results = calls.map(({ id, name }, position): ToolStep => {
      const call = { step: 0, position, id }
      return { kind: 'tool', call, name, arguments: { raw: '{}' }, result: position, ms: position }
    })
    const inOrder = (places: number[]) =>
      digest([first, ...places.map((place) => results[place]!), model({})].map(placed))
    expect(inOrder([2, 0, 1])).toBe(inOrder([0, 1, 2]))
    expect(inOrder([0, 1])).not.toBe(inOrder([0, 1, 2]))
  })

  test('is of the same text for a long branch as for the same in pieces', () => {
    const long = (words: string) => Array.from({ length: 300 }, (_, i) => note(`${words} ${i}`.repeat(20))).map(placed)
    expect(digest(long('a'))).toBe(digest(long('a')))
    expect(digest(long('a'))).not.toBe(digest(long('b')))
    expect(digest([...long('a').slice(0, -1), placed(note('else'), 299)])).not.toBe(digest(long('a')))
  })

  test('can be asked for twice', () => {
    const made = new TrajectoryDigest()
    for (let i = 0; i < 300; i++) made.add(placed(note('x'.repeat(100)), i))
    expect(made.end('success', undefined)).toBe(made.end('success', undefined))
  })

  test('tells endings apart', () => {
    const end = (more: Partial<Episode>, status?: 'failed') =>
      digest([placed(note('x'), 0)], { ending: { kind: 'terminated' }, reward: 1, success: true, ...more }, status)
    const digests = [
      end({}),
      end({}, 'failed'),
      end({ ending: { kind: 'unknown' } }),
      end({ ending: { kind: 'truncated', by: 'maxSteps' } }),
      end({ ending: { kind: 'truncated', by: 'budget' } }),
      end({ reward: 2 }),
      end({ success: false }),
      end({ finalObservation: 0 }),
      digest([placed(note('x'), 0)]),
      digest([], { ending: { kind: 'terminated' }, reward: 1, success: true }),
    ]
    expect(digests.every((one) => /^[0-9a-f]{64}$/.test(one!))).toBe(true)
    expect(new Set(digests).size).toBe(digests.length)
  })

  test('is not there for nothing, and not where the clock ended an episode, also that of a sub-agent', () => {
    const late: Episode = { ending: { kind: 'truncated', by: 'timeout' }, reward: 1, success: null }
    expect(digest([])).toBeUndefined()
    expect(digest([placed(note('x'), 0)], late)).toBeUndefined()
    expect(digest([placed({ kind: 'note', ends: late }, 0)])).toBeUndefined()
  })
})

const note = (action: unknown) => ({ kind: 'note' as const, action })
const placed = (content: object, index: number) => ({ index, atMs: index, ...content }) as Step

function model(more: Partial<ModelStep>): ModelStep {
  return {
    kind: 'model',
    role: 'agent',
    policy: null,
    server: { model: 'm' },
    request: { from: null, keep: 0, added: [], tools: '', wire: '' },
    reply: { role: 'assistant', content: 'hi', wire: '' },
    finish: 'stop',
    cached: false,
    tokens: null,
    sampling: { temperature: 1, topP: 1, topK: 0, minP: 0, other: null },
    ms: 1,
    retries: 0,
    ...more,
  }
}

/** The same step on another day: everything differs that is not on the list. */
function elsewhere(step: Step, salt: number): Step {
  const id = (id: string) => `${salt}-${id}`
  const calls = (message: ModelStep['reply']) => ({
    ...message,
    ...(message.callId === undefined ? {} : { callId: id(message.callId) }),
    ...(message.calls ? { calls: message.calls.map((call) => ({ ...call, id: id(call.id) })) } : {}),
    wire: `${salt}`,
  })
  const base = { ...step, atMs: step.atMs + salt, usage: { outputTokens: salt }, agent: `${salt}` }
  switch (base.kind) {
    case 'note':
      return { ...base, text: `took ${salt} ms`, data: { salt } }
    case 'action':
      return { ...base, policy: { name: 'other', version: salt } }
    case 'tool':
      return {
        ...base,
        call: base.call && { ...base.call, id: id(base.call.id) },
        arguments: { raw: base.arguments.raw, value: salt },
        ms: salt,
        ...(base.error ? { error: { ...base.error, stack: `at ${salt}` } } : {}),
      }
    case 'model':
      return {
        ...base,
        policy: null,
        server: { model: `${salt}`, id: `${salt}` },
        request: {
          ...base.request,
          added: base.request.added.map((message) => calls({ wire: '', ...message })),
          wire: '',
        },
        reply: calls(base.reply),
        cached: !base.cached,
        sampling: { ...base.sampling, seed: salt },
        ms: salt,
        retries: salt,
      }
  }
}

/** One change for each field on the list. */
function changes(step: Step): object[] {
  const other = { changed: 'by the test' }
  switch (step.kind) {
    case 'note':
      return [{ action: other }, { observation: other }, { reward: 0.123 }]
    case 'action':
      return [
        ...[{ action: other }, { observation: other }, { reward: 0.123 }, { candidates: [other] }, { choice: 7 }],
        ...[{ logProb: null }, { value: -0 }, { mode: 'greedy' }, { rewards: { a: 2 } }],
      ]
    case 'tool':
      return [
        ...[{ name: 'other' }, { arguments: { raw: '' } }, { result: other }, { error: { message: 'other' } }],
        ...[{ reward: 0.123 }, ...(step.call ? [{ call: { ...step.call, position: 99 } }, { call: null }] : [])],
      ]
    case 'model': {
      const { request, reply, tokens } = step
      return [
        ...[{ role: 'judge' }, { finish: 'length' }, { reward: 0.123 }],
        ...[{ keep: 99 }, { added: [] }, { tools: 'other' }].map((more) => ({ request: { ...request, ...more } })),
        ...[{ content: other }, { reasoning: 'r' }, { calls: [{ id: 'x', name: 'x', raw: 'x' }] }].map((more) => ({
          reply: { ...reply, ...more },
        })),
        ...(tokens
          ? [
              { tokenizer: 'other' },
              { tail: new Int32Array([...tokens.tail, 1]) },
              { completion: new Int32Array([...tokens.completion, 1]) },
              { logProbs: null },
              { logProbs: new Float64Array([...tokens.logProbs!, Number.NaN]) },
              { of: 'processed' },
              { constrained: true },
            ].map((more) => ({ tokens: { ...tokens, ...more } }))
          : [{ tokens: model({}).tokens ?? { ...EMPTY } }]),
      ]
    }
  }
}

const EMPTY = {
  ...{ tokenizer: '', from: null, tail: new Int32Array(), completion: new Int32Array(), logProbs: null },
  ...{ of: 'raw', constrained: false },
}
