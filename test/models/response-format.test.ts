import { jsonSchema } from 'ai'
import { describe, expect, test } from 'vitest'
import * as z from 'zod'
import { jsonFormat, withoutAddedNulls } from '../../src/models/response-format.ts'
import { jsonSchemaOf, outputOf } from '../../src/models/worker/output.ts'
import { strictProblem } from './scripted/strict.ts'

const format = (schema: object, nullable = true) => {
  const made = jsonFormat(schema, { nullable })
  const { json_schema } = made.format as { json_schema: { schema: Record<string, unknown>; strict: boolean } }
  // Whatever is sent as strict, OpenAI accepts.
  expect(strictProblem({ response_format: made.format as never })).toBeUndefined()
  return { ...json_schema, why: made.notStrict }
}
const ofZod = (schema: z.ZodType) => z.toJSONSchema(schema, { io: 'input' })

describe('a strict schema', () => {
  const inner = z.object({ a: z.string(), b: z.number().optional() })
  test.each<[string, z.ZodType]>([
    ['nested objects', z.object({ inner, list: z.array(inner) })],
    ['unions', z.object({ one: z.union([inner, z.string()]).optional() })],
    ['constants and enums', z.object({ kind: z.literal('x').optional(), size: z.enum(['s', 'l']).optional() })],
    [
      'recursion',
      z.object({
        get next() {
          return inner.extend({ deep: inner.optional() }).optional()
        },
      }),
    ],
  ])('%s', (_, schema) => {
    expect(format(ofZod(schema))).toMatchObject({ strict: true, why: undefined })
  })

  test('lists all properties, and closes every object', () => {
    const { schema } = format(ofZod(z.object({ inner, nick: z.string().nullish() })))
    expect(schema).toMatchObject({
      ...{ additionalProperties: false, required: ['inner', 'nick'] },
      properties: {
        inner: { additionalProperties: false, required: ['a', 'b'], properties: { b: { type: ['number', 'null'] } } },
        nick: { type: ['string', 'null'] },
      },
    })
  })

  test('is the same when it is rewritten again', () => {
    const { schema } = format(ofZod(z.object({ inner, kind: z.literal('x').optional() })))
    expect(format(schema, false)).toMatchObject({ strict: true, schema })
  })
})

test.each<[string, object, string]>([
  ['a record', ofZod(z.object({ m: z.record(z.string(), z.number()) })), "'m' "],
  ['an open object', ofZod(z.looseObject({ a: z.string() })), 'the schema allows additional properties'],
  ['any value', ofZod(z.object({ a: z.object({ b: z.any() }) })), "'a.b' allows any value"],
  ['a list at the top', ofZod(z.array(z.string())), 'not that of an object'],
  ['an intersection', { type: 'object', properties: {}, allOf: [{}] }, '`allOf`'],
])('%s is not strict, and is sent as it is', (_, schema, why) => {
  const sent = format(schema)
  expect(sent).toMatchObject({ strict: false, why: expect.stringContaining(why) })
  expect(sent.schema).toBe(schema)
})

test('without a reader that understands nulls, optional properties are not strict', () => {
  expect(format(ofZod(z.object({ a: z.string().optional() })), false)).toMatchObject({
    strict: false,
    why: "'a' is optional",
  })
})

test('the nulls of optional properties are removed, others are kept', () => {
  const inner = z.object({ a: z.string().optional(), b: z.string().nullable(), c: z.string().nullish() })
  const tree = z.object({
    list: z.array(inner).optional(),
    either: z.union([z.object({ x: z.literal(1), y: z.number().optional() }), inner]),
  })
  const given = { list: [{ a: null, b: null, c: null }], either: { x: 1, y: null } }
  expect(withoutAddedNulls(ofZod(tree), given)).toEqual({ list: [{ b: null, c: null }], either: { x: 1 } })
  const other = { list: null, either: { a: null, b: null, c: 'c' } }
  expect(withoutAddedNulls(ofZod(tree), other)).toEqual({ either: { b: null, c: 'c' } })
})

test.each<[string, z.ZodType, string]>([
  [
    'z.date()',
    z.object({ trip: z.object({ stops: z.array(z.object({ at: z.date() })) }) }),
    "'trip.stops.[].at': Date",
  ],
  ['z.bigint()', z.object({ properties: z.object({ items: z.bigint() }) }), "'properties.items': BigInt"],
  ['z.set()', z.object({ a: z.union([z.string(), z.set(z.string())]) }), "'a': Set"],
  ['only z.date()', z.date(), 'JSON schema: Date'],
])('%s in a schema is a wrong request, which names the property', async (_, schema, words) => {
  await expect(jsonSchemaOf(schema)).rejects.toMatchObject({
    ...{ code: 'REQUEST_INVALID', message: expect.stringContaining(words) },
  })
})

describe('an answer for a JSON schema', () => {
  const plain = {
    type: 'object',
    properties: {
      country: { type: 'string', pattern: '^[A-Z]' },
      people: { type: 'integer', minimum: 3, default: 5 },
      size: { enum: ['s', 'l'] },
      place: { $ref: '#/$defs/place' },
    },
    required: ['country'],
    additionalProperties: false,
    $defs: {
      place: { $id: 'place', type: 'object', properties: { inside: { $ref: '#/$defs/place' } }, required: ['inside'] },
    },
  }
  const read = (schema: object, value: unknown) => outputOf(schema as never, JSON.stringify(value), 'm', 'stop')

  test.each([{ country: 'France' }, { country: 'France', people: 3, size: 'l' }])(
    'that matches is the answer, as it is: %j',
    async (value) => {
      expect(await read(plain, value)).toEqual(value)
      expect(await read(jsonSchema(plain as never), value)).toEqual(value)
    },
  )

  test('has no null for a property that is absent', async () => {
    expect(await read(plain, { country: 'France', people: null, size: null })).toEqual({ country: 'France' })
  })

  test.each<[unknown, string]>([
    [{}, 'country: '],
    [{ country: 'france' }, 'country: '],
    [{ country: 'France', people: 'many' }, 'people: '],
    [{ country: 'France', people: 1 }, 'people: '],
    [{ country: 'France', size: 'm' }, 'size: '],
    [{ country: 'France', more: 1 }, 'the schema: Unrecognized key: "more"'],
    [{ country: 'France', place: { inside: {} } }, 'place.inside.inside: '],
    [[], 'expected object'],
  ])('that does not match is refused: %j', async (value, words) => {
    const message = expect.stringContaining(words)
    await expect(read(plain, value)).rejects.toMatchObject({ code: 'MODEL_OUTPUT_INVALID', message })
    await expect(read(jsonSchema(plain as never), value)).rejects.toMatchObject({ code: 'MODEL_OUTPUT_INVALID' })
  })

  test('may have its parts in `definitions`', async () => {
    const schema = { type: 'array', items: { $ref: '#/definitions/n' }, definitions: { n: { type: 'number' } } }
    expect(await read(schema, [1])).toEqual([1])
    await expect(read(schema, ['1'])).rejects.toMatchObject({ code: 'MODEL_OUTPUT_INVALID' })
  })

  test.each<[object, string]>([
    [{ type: 'objekt' }, 'objekt'],
    [{ type: 'object', properties: { a: { type: 'strin' } } }, 'strin'],
    [{ type: 'string', pattern: '(' }, 'regular expression'],
    [{ type: 'object', if: { type: 'object' } }, 'if/then/else'],
    [{ $ref: '#/$defs/none' }, '#/$defs/none'],
  ])('is not asked for by a schema that cannot check it: %j', async (schema, words) => {
    await expect(jsonSchemaOf(schema as never)).rejects.toMatchObject({
      ...{ code: 'REQUEST_INVALID', message: expect.stringContaining(words) },
    })
  })
})
