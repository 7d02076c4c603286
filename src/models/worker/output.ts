import { ManyworldsError } from '../../errors.ts'
import { wordsOf } from '../../text/thrown.ts'
import type { OutputSchema, StandardSchema } from '../generate.ts'
import { strictSchema, withoutAddedNulls } from '../response-format.ts'

const MAX_SHOWN = 200

const isStandard = (schema: object): schema is StandardSchema<unknown> => '~standard' in schema

/** The JSON schema of an answer, as it is sent: strict, if it can be. `outputOf` reads the answer. */
export async function sentSchemaOf(schema: OutputSchema<unknown>): Promise<object> {
  return strictSchema(await jsonSchemaOf(schema), true).schema
}

/** Converts a schema to a JSON schema. Throws if it is none, or if answers cannot be checked by it. */
export async function jsonSchemaOf(schema: OutputSchema<unknown>): Promise<object> {
  if (!isStandard(schema)) {
    const plain = await plainOf(schema)
    await checkerOf(plain)
    return plain
  }
  const standard = schema['~standard'] as {
    jsonSchema?: { input?: (options: { target: string }) => object }
    vendor?: string
  }
  try {
    if (typeof standard.jsonSchema?.input === 'function') return standard.jsonSchema.input({ target: 'draft-2020-12' })
    if (standard.vendor === 'zod') return (await import('zod/mini')).toJSONSchema(schema as never)
  } catch (cause) {
    const path = standard.vendor === 'zod' ? await unrepresentableIn(schema) : ''
    const at = path === '' ? '' : `'${path}': `
    throw new ManyworldsError(
      'REQUEST_INVALID',
      `the schema cannot be converted to a JSON schema: ${at}${wordsOf(cause).message}; use a type that JSON has, such as z.string()`,
      { cause },
    )
  }
  throw new ManyworldsError(
    'REQUEST_INVALID',
    'the schema cannot be converted to a JSON schema; use a zod 4 schema or a JSON schema',
  )
}

/** `jsonSchema(…)` of the AI SDK has the JSON schema inside. */
const SDK_SCHEMA = Symbol.for('vercel.ai.schema')

const plainOf = async (schema: object): Promise<object> =>
  SDK_SCHEMA in schema ? ((await (schema as { jsonSchema?: object }).jsonSchema) ?? {}) : schema

/** Checks answers by a JSON schema. */
async function checkerOf(schema: object): Promise<StandardSchema<unknown>> {
  const { fromJSONSchema, registry } = await import('zod')
  try {
    return fromJSONSchema(schema as never, {
      // Schemas of before 2020 have their parts there, and often no `$schema`.
      defaultTarget: 'definitions' in schema ? 'draft-7' : 'draft-2020-12',
      // The global one would keep the schemas that have an id.
      registry: registry(),
    })
  } catch (cause) {
    throw new ManyworldsError(
      'REQUEST_INVALID',
      `the JSON schema is not valid, or answers cannot be checked by it: ${wordsOf(cause).message}; correct it, or use a zod schema`,
      { cause },
    )
  }
}

/** The first property of a zod schema that has no JSON schema, such as `trip.stops.[].date`; empty if it cannot be known. */
async function unrepresentableIn(schema: StandardSchema<unknown>): Promise<string> {
  const { toJSONSchema } = await import('zod/mini')
  let found: readonly PropertyKey[] = []
  const note = ({ path, message }: { path: readonly PropertyKey[]; message: string }): never => {
    found = path
    throw new Error(message)
  }
  try {
    toJSONSchema(schema as never, { io: 'input', unrepresentable: note })
  } catch {
    // The error is already known.
  }
  const names: string[] = []
  for (let i = 0; i < found.length; i++)
    if (found[i] === 'properties') names.push(String(found[++i]))
    else if (found[i] === 'items') names.push('[]')
  return names.join('.')
}

/** Parses and validates a model's JSON answer. */
export async function outputOf(
  schema: OutputSchema<unknown>,
  text: string,
  model: string,
  finish: string,
): Promise<unknown> {
  const invalid = (why: string) =>
    new ManyworldsError(
      'MODEL_OUTPUT_INVALID',
      `the answer of model '${model}' does not match the schema: ${why}${finish === 'length' ? '; it was truncated: increase `maxTokens`' : ''}. The answer: ${shown(text)}`,
    )
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw invalid('it is not JSON')
  }
  const jsonSchema = await jsonSchemaOf(schema)
  value = withoutAddedNulls(jsonSchema, value)
  const checker = isStandard(schema) ? schema : await checkerOf(jsonSchema)
  const result = await checker['~standard'].validate(value)
  // A JSON schema only checks: the answer stays as it is, without defaults.
  if (result.issues === undefined) return isStandard(schema) ? result.value : value
  const [first] = result.issues
  throw invalid(
    `${first?.path?.length ? `${first.path.map(String).join('.')}: ` : ''}${first?.message ?? 'it does not match'}`,
  )
}

const shown = (text: string) => JSON.stringify(text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)} …` : text)
