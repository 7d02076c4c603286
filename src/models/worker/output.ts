import { ManyworldsError } from '../../errors.ts'
import type { OutputSchema, StandardSchema } from '../generate.ts'

const MOST_SHOWN = 200

const isStandard = (schema: object): schema is StandardSchema<unknown> => '~standard' in schema

/** The JSON schema of a schema. Those of zod are turned into one. */
export async function jsonSchemaOf(schema: OutputSchema<unknown>): Promise<object> {
  if (!isStandard(schema)) return schema
  const standard = schema['~standard'] as {
    jsonSchema?: { input?: (options: { target: string }) => object }
    vendor?: string
  }
  if (typeof standard.jsonSchema?.input === 'function') return standard.jsonSchema.input({ target: 'draft-2020-12' })
  if (standard.vendor === 'zod') {
    const { toJSONSchema } = await import('zod/mini')
    return toJSONSchema(schema as never)
  }
  throw new ManyworldsError(
    'REQUEST_INVALID',
    'the schema cannot be turned into a JSON schema: give one of zod 4, or a JSON schema',
  )
}

/** What a model was to write as JSON, checked. */
export async function outputOf(
  schema: OutputSchema<unknown>,
  text: string,
  model: string,
  finish: string,
): Promise<unknown> {
  const invalid = (why: string) =>
    new ManyworldsError(
      'MODEL_OUTPUT_INVALID',
      `model '${model}' did not answer as its schema says: ${why}${finish === 'length' ? '; it was cut short: allow more with `maxTokens`' : ''}. It said: ${shown(text)}`,
    )
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw invalid('it is not JSON')
  }
  if (!isStandard(schema)) return value
  const result = await schema['~standard'].validate(value)
  if (result.issues === undefined) return result.value
  const [first] = result.issues
  throw invalid(`${first?.path ? `${first.path.map(String).join('.')}: ` : ''}${first?.message ?? 'it does not match'}`)
}

const shown = (text: string) => JSON.stringify(text.length > MOST_SHOWN ? `${text.slice(0, MOST_SHOWN)} …` : text)
