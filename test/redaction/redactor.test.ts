import { inspect } from 'node:util'
import { deserialize, serialize } from 'node:v8'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { secretTextsIn, withoutSecretFields } from '../../src/models/secret-fields.ts'
import { NotPackable, pack, unpack } from '../../src/protocol/pack.ts'
import { redactorOf } from '../../src/redaction/config.ts'
import { REDACTED } from '../../src/redaction/forms.ts'
import { Redactor } from '../../src/redaction/redactor.ts'
import { redactSteps } from '../../src/redaction/steps.ts'
import { decode, encode } from '../../src/store/values.ts'
import { ListMemory } from '../../src/trajectory/list-memory.ts'
import { type PackedStep, packStep } from '../../src/trajectory/packed-step.ts'
import type { Step } from '../../src/trajectory/step.ts'
import { unpackSteps } from '../../src/trajectory/unpack-steps.ts'
import { model, placed } from '../trajectory/made.ts'

const KEY = 'sk-test-0a1b2c3d4e5f'
const ODD = 'p"a\\s/s+w=ör d-💥'
const redactor = redactorOf([KEY, ODD])!

describe('a text', () => {
  it.each([
    ['as it is', `a ${KEY} b ${KEY}`, 'a [redacted] b [redacted]'],
    ['in JSON', JSON.stringify({ ODD }), '{"ODD":"[redacted]"}'],
    ['in JSON inside of JSON', JSON.stringify(JSON.stringify({ ODD })), '"{\\"ODD\\":\\"[redacted]\\"}"'],
    ['in a URL', `https://x.test/?key=${encodeURIComponent(ODD)}&b=1`, 'https://x.test/?key=[redacted]&b=1'],
    ['in a form', `${new URLSearchParams({ k: ODD })}`, 'k=[redacted]'],
    ['where two overlap', 'abcdefghijkl', '[redacted]', redactorOf(['abcdefgh', 'efghijkl'])!],
    ['where one is inside of the other', 'x abcdefghijkl x', 'x [redacted] x', redactorOf(['abcdefghij', /a\w+l/])!],
    [
      'by a pattern without the flag g',
      'id 123-45-6789, 987-65-4321',
      'id [redacted], [redacted]',
      redactorOf([/\d{3}-\d\d-\d{4}/])!,
    ],
  ])('loses a secret %s', (_, text, clean, with_ = redactor) => {
    expect(with_.text(text)).toBe(clean)
    expect(with_.text(clean)).toBe(clean)
  })

  it.each(['', 'user:', 'Bearer ', 'x', 'xy'])('loses a secret in base64 after %o', (before) => {
    for (const encoding of ['base64', 'base64url'] as const)
      for (const secret of [KEY, ODD]) {
        const clean = redactor.text(Buffer.from(`${before}${secret}:z`).toString(encoding))
        expect(clean).toContain('[redacted]')
        // A character at either end may be of what stands beside it too.
        expect(clean.length - '[redacted]'.length).toBeLessThanOrEqual(Math.ceil((before.length * 4) / 3) + 6)
      }
  })

  it('of innocent people stays the same object', () => {
    const value = { a: ['none', KEY.slice(1)], b: new Map([[1, new Date(1)]]) }
    expect(redactor.value(value)).toBe(value)
    for (const packed of [pack(value), pack(new Map()), pack({ long: 'x'.repeat(20_000) }), 5, undefined, null])
      expect(redactor.packed(packed)).toBe(packed)
  })

  it('short values are no secrets, and without secrets there is no redactor', () => {
    expect(Redactor.of({ values: ['none', 'EMPTY', '', '1234567', 'redacted'], patterns: [] })).toBeUndefined()
    expect(redactorOf([])).toBeUndefined()
  })
})

it('keys that become the same keep their values', () => {
  const both = { [KEY]: 1, [ODD]: 2, '[redacted]': 3 }
  expect(redactor.value(both)).toEqual({ '[redacted]': 1, '[redacted] (2)': 2, '[redacted] (3)': 3 })
  expect(redactor.value(new Map(Object.entries(both))).size).toBe(3)
})

// ---- any value

/** A value that is made twice: with a secret in it, and with what should stand there. */
type Made = (secret: string, bytes: Uint8Array) => unknown

const words = fc.string({ unit: fc.constantFrom('a', '"', '\\', 'é', '💥', '\n', ' ', '/', '\0'), maxLength: 6 })
const planted: fc.Arbitrary<(secret: string) => string> = fc.oneof(
  words.map((word) => () => word),
  fc.tuple(words, words).map(
    ([before, after]) =>
      (secret: string) =>
        before + secret + after,
  ),
)
const views: readonly (new (bytes: ArrayBuffer) => object)[] = [Uint8Array, Uint8ClampedArray, Int8Array]
const value: fc.Arbitrary<Made> = fc.letrec<{ value: Made }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, depthSize: 'medium' },
    planted.map(
      (text): Made =>
        (secret) =>
          text(secret),
    ),
    fc.constantFrom(1, -0, Number.NaN, 12n, null, undefined, true).map(
      (leaf): Made =>
        () =>
          leaf,
    ),
    fc.date({ noInvalidDate: true }).map(
      (date): Made =>
        () =>
          date,
    ),
    fc.array(tie('value'), { maxLength: 4 }).map(
      (items): Made =>
        (...with_) =>
          items.map((item) => item(...with_)),
    ),
    fc.array(fc.tuple(planted, tie('value')), { maxLength: 4 }).map(
      (fields): Made =>
        (...with_) =>
          Object.fromEntries(fields.map(([key, item]) => [key(with_[0]), item(...with_)])),
    ),
    fc.array(fc.tuple(planted, tie('value')), { maxLength: 3 }).map(
      (fields): Made =>
        (...with_) =>
          new Map(fields.map(([key, item]) => [key(with_[0]), item(...with_)])),
    ),
    fc.array(planted, { maxLength: 3 }).map(
      (texts): Made =>
        (secret) =>
          new Set(texts.map((text) => text(secret))),
    ),
    fc.tuple(planted, tie('value'), fc.constantFrom(Error, TypeError, RangeError)).map(
      ([message, cause, Kind]): Made =>
        (...with_) =>
          Object.assign(new Kind(message(with_[0]), { cause: cause(...with_) }), { stack: `at ${with_[0]}` }),
    ),
    fc.constantFrom(...views).map(
      (View): Made =>
        (_, bytes) =>
          new View(Uint8Array.from([1, ...bytes, 2]).buffer),
    ),
    fc.tuple(planted, tie('value')).map(
      ([text, inner]): Made =>
        (...with_) => {
          const circle: Record<string, unknown> = { text: text(with_[0]), inner: inner(...with_) }
          circle.self = circle
          return circle
        },
    ),
    tie('value').map(
      (inner): Made =>
        (...with_) => {
          const shared = inner(...with_)
          const holed = [shared, shared, shared]
          delete holed[1]
          return Object.assign(holed, { named: with_[0] })
        },
    ),
  ),
})).value

describe.each([
  ['a plain secret', KEY],
  ['a secret that has to be escaped', ODD],
])('any value with %s', (_, secret) => {
  const stars = '*'.repeat(Buffer.byteLength(secret))
  const clean = (make: Made) => make('[redacted]', Buffer.from(stars))
  const dirty = (make: Made) => make(secret, Buffer.from(secret))

  it('that is packed, redacted and unpacked is the same but for it', () => {
    fc.assert(
      fc.property(value, (make) => {
        const before = dirty(make)
        const copy = deserialize(serialize(before))
        const packed = attempt(() => pack(before))
        fc.pre(packed !== undefined)
        expectSame(unpack(redactor.packed(packed!.value)), unpack(pack(clean(make))))
        expectSame(decode(redactor.encoded(encode(before))), decode(encode(clean(make))))
        expectSame(before, copy)
        expect(redactor.has(packed!.value)).toBe(!Object.is(redactor.packed(packed!.value), packed!.value))
      }),
      { numRuns: 500 },
    )
  })

  it('in steps that share their lists', () => {
    const conversation = fc.array(fc.tuple(fc.array(value, { maxLength: 3 }), planted), { minLength: 1, maxLength: 6 })
    fc.assert(
      fc.property(conversation, (turns) => {
        const stepsOf = (with_: readonly [string, Uint8Array]): Step[] => {
          const messages: unknown[] = ['a long beginning, which is worth a link '.repeat(4)]
          return turns.map(([added, key], index) => {
            for (const item of added) messages.push(item(...with_))
            const data = { [key(with_[0])]: [...messages], numbers: [1, 2, 3, 4, 5, 6, 7, 8, 9], bytes: with_[1] }
            return { index, atMs: index, kind: 'note', text: key(with_[0]), data }
          })
        }
        const memory = new ListMemory()
        const dirtySteps = stepsOf([secret, Uint8Array.from(Buffer.from(secret))])
        const packed = attempt(() => dirtySteps.map((step) => packStep(step, () => memory)))
        fc.pre(packed !== undefined)
        const redacted = redactSteps(redactor, packed!.value, 0, new Set())
        const expected = stepsOf(['[redacted]', Uint8Array.from(Buffer.from(stars))])
        const others = new ListMemory()
        const same = unpackSteps(expected.map((step) => packStep(step, () => others)))
        for (const [index, step] of unpackSteps(redacted).entries()) expectSame(step, same[index])
      }),
      { numRuns: 200 },
    )
  })
})

const EVERYTHING = { depth: 50, maxArrayLength: null, maxStringLength: null } as const

/** Also in stacks, holes, circles and bytes. */
function expectSame(one: unknown, other: unknown): void {
  const [a, b] = [one, other].map((each) => deserialize(serialize(each)))
  expect(a).toStrictEqual(b)
  expect(inspect(a, EVERYTHING)).toBe(inspect(b, EVERYTHING))
}

/** Undefined if it is one of the values that cannot be sent. */
function attempt<T>(make: () => T): { value: T } | undefined {
  try {
    return { value: make() }
  } catch (error) {
    if (error instanceof NotPackable) return undefined
    throw error
  }
}

describe('steps', () => {
  const packed = (steps: Step[]): PackedStep[] => {
    const memory = new ListMemory()
    return steps.map((step) => packStep(step, () => memory))
  }

  it('without a secret are the same objects', () => {
    const steps = packed(placed(model({}), { kind: 'note', text: 'x' }))
    expect(redactSteps(redactor, steps, 0, new Set())).toBe(steps)
  })

  it('of a model that come in another batch than the one they continue lose their tokens too', () => {
    const [first, second, third] = packed(
      placed(
        model({ reply: { role: 'assistant', content: KEY, wire: '' } }),
        model({ request: { from: 0, keep: 2, added: [], tools: '', wire: '' } }),
        model({ from: 1 }),
      ),
    )
    const redacted = new Set<number>()
    const batches = [first, second, third].map((step, index) => redactSteps(redactor, [step!], index, redacted)[0]!)
    expect(unpackSteps(batches)).toMatchObject(Array.from({ length: 3 }, () => ({ tokens: null, redacted: true })))
  })

  it('with a secret as numbers lose it there', () => {
    const codes = [...Buffer.from(KEY)]
    const steps = packed(placed({ kind: 'note', data: { bytes: Uint8Array.from(codes), codes } }))
    const [{ data }] = unpackSteps(redactSteps(redactor, steps, 0, new Set())) as [Step & { kind: 'note' }]
    expect(data).toEqual({ bytes: new Uint8Array(KEY.length).fill(42), codes: codes.map(() => 42) })
  })
})

it('fields whose names say that they are secret lose their values, and only those', () => {
  const body = {
    ...{
      api_key: 'a',
      apiKey: 'b',
      'X-Api-Key': 'c',
      password: 'd',
      access_token: 'e',
      token: 'f',
      nested: [{ secret: 'g' }],
      api_keys: ['l', { of: 'm' }],
      authorization: { value: 'n' },
    },
    ...{
      routing_key: 'o',
      max_tokens: 5,
      tokenizer: 'h',
      prompt_cache_key: 'i',
      stop_token_ids: [1],
      keys: 'j',
      monkey: 'k',
    },
    schema: { properties: { password: { type: 'string' } }, required: ['password'] },
  }
  const clean = withoutSecretFields(body)
  expect(secretTextsIn(body).sort()).toEqual(['a', 'b', 'c', 'd', 'e', 'f', 'g', 'l', 'm', 'n'])
  expect(secretTextsIn(clean)).toEqual(Array.from({ length: 10 }, () => REDACTED))
  expect(clean).toMatchObject({
    routing_key: 'o',
    tokenizer: 'h',
    prompt_cache_key: 'i',
    keys: 'j',
    monkey: 'k',
    schema: body.schema,
  })
  expect(withoutSecretFields(clean)).toBe(clean)
})
