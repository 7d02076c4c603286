import { describe, expect, test } from 'vitest'
import * as z from 'zod'
import { jsonFormat, withoutAddedNulls } from '../../src/models/response-format.ts'
import { jsonSchemaOf } from '../../src/models/worker/output.ts'
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
  ['z.date()', z.object({ trip: z.object({ stops: z.array(z.object({ at: z.date() })) }) }), "'trip.stops.[].at': Date"],
  ['z.bigint()', z.object({ properties: z.object({ items: z.bigint() }) }), "'properties.items': BigInt"],
  ['z.set()', z.object({ a: z.union([z.string(), z.set(z.string())]) }), "'a': Set"],
  ['only z.date()', z.date(), 'JSON schema: Date'],
])('%s in a schema is a wrong request, which names the property', async (_, schema, words) => {
  await expect(jsonSchemaOf(schema)).rejects.toMatchObject({
    ...{ code: 'REQUEST_INVALID', message: expect.stringContaining(words) },
  })
})
