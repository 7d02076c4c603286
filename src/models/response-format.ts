/**
 * The `response_format` of structured output. With `strict: true`, OpenAI refuses a schema with an object that allows
 * other properties, or whose properties are not all required; so schemas are rewritten, and those that cannot be are
 * sent without `strict`.
 */
export interface FormatOptions {
  readonly name?: string | undefined
  readonly description?: string | undefined
  /** False: not strict, as the caller requests. */
  readonly strict?: unknown
  /**
   * Whether an optional property may become one that can be null; the reader must then use `withoutAddedNulls`. Without
   * it, a schema with optional properties is not strict.
   */
  readonly nullable?: boolean
}

export interface JsonFormat {
  readonly format: object
  /** Why `strict` was left out, though the caller did not request it. */
  readonly notStrict: string | undefined
}

export function jsonFormat(schema: object, options: FormatOptions = {}): JsonFormat {
  const { name = 'response', description, strict = true, nullable = false } = options
  const rewritten = strict === true ? strictSchema(schema, nullable) : { schema }
  const isStrict = strict === true && rewritten.why === undefined
  const format = {
    type: 'json_schema',
    json_schema: {
      schema: rewritten.schema,
      strict: isStrict,
      name,
      ...(description !== undefined && { description }),
    },
  }
  return { format, notStrict: rewritten.why }
}

/** The schema as it is sent, and why it cannot be strict, if so; then the schema is the given one. */
export function strictSchema(schema: object, nullable: boolean): { schema: object; why?: string } {
  try {
    const root = strictOf(schema, '', nullable)
    if (root.type !== 'object') throw new NotStrict('the schema is not that of an object')
    return { schema: root }
  } catch (error) {
    if (!(error instanceof NotStrict)) throw error
    return { schema, why: error.message }
  }
}

type Schema = Readonly<Record<string, unknown>>

class NotStrict extends Error {}

/** Keywords that OpenAI refuses with `strict`, and that have no equivalent. */
const IMPOSSIBLE = ['allOf', 'not', 'if', 'patternProperties', 'dependentRequired', 'dependentSchemas', 'prefixItems']
const MAX_DEPTH = 64

function strictOf(given: unknown, path: string, nullable: boolean, depth = 0): Schema {
  const at = path === '' ? 'the schema' : `'${path}'`
  if (!isSchema(given) || depth > MAX_DEPTH) throw new NotStrict(`${at} allows any value`)
  const impossible = IMPOSSIBLE.find((keyword) => keyword in given)
  if (impossible !== undefined) throw new NotStrict(`${at} uses \`${impossible}\``)
  // A default is not allowed: a null stands for it, and the reader's own schema has it.
  const { oneOf, anyOf = oneOf, default: _, ...rest } = given
  const inner = (schema: unknown, name: string) =>
    strictOf(schema, path === '' ? name : `${path}.${name}`, nullable, depth + 1)
  const schema: Record<string, unknown> = { ...rest }
  for (const key of ['$defs', 'definitions'])
    if (isSchema(rest[key])) schema[key] = mapped(rest[key], (one) => strictOf(one, path, nullable, depth + 1))
  if (Array.isArray(anyOf)) schema.anyOf = anyOf.map((one) => strictOf(one, path, nullable, depth + 1))
  if (rest.items !== undefined) schema.items = inner(rest.items, '[]')
  if (isSchema(rest.properties)) {
    const { additionalProperties: others = false } = rest
    if (others !== false) throw new NotStrict(`${at} allows additional properties`)
    const required = requiredIn(rest)
    schema.properties = mapped(rest.properties, (one, name) => {
      const property = inner(one, name)
      if (required.has(name)) return property
      if (!nullable) throw new NotStrict(`'${path === '' ? name : `${path}.${name}`}' is optional`)
      return orNull(property)
    })
    schema.required = Object.keys(rest.properties)
    schema.additionalProperties = false
  } else if (allows(rest, 'object')) throw new NotStrict(`${at} allows any properties`)
  if (!KINDS.some((keyword) => keyword in schema)) throw new NotStrict(`${at} allows any value`)
  return schema
}

/** A schema without any of these allows any value. */
const KINDS = ['type', 'anyOf', '$ref', 'enum', 'const']

const isSchema = (value: unknown): value is Schema =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const mapped = (schemas: Schema, change: (schema: unknown, name: string) => Schema) =>
  Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, change(schema, name)]))

const requiredIn = ({ required }: Schema): ReadonlySet<unknown> => new Set(Array.isArray(required) ? required : [])

const allows = ({ type }: Schema, name: string) => type === name || (Array.isArray(type) && type.includes(name))

const NULL = { type: 'null' }

function orNull(schema: Schema): Schema {
  if (allowsNull(schema, schema)) return schema
  const { type, anyOf } = schema
  if (Array.isArray(anyOf)) return { ...schema, anyOf: [...anyOf, NULL] }
  if (typeof type === 'string' && !('enum' in schema) && !('const' in schema))
    return { ...schema, type: [type, 'null'] }
  return { anyOf: [schema, NULL] }
}

/**
 * Removes the nulls that stand for absent properties: those of optional properties whose own schema does not allow
 * null. `schema` is the one before it was rewritten.
 */
export function withoutAddedNulls(schema: object, value: unknown): unknown {
  return isSchema(schema) ? withoutNulls(schema, schema, value, 0) : value
}

function withoutNulls(given: unknown, root: Schema, value: unknown, depth: number): unknown {
  if (typeof value !== 'object' || value === null || depth > MAX_DEPTH) return value
  const schema = resolved(given, root)
  if (schema === undefined) return value
  const inner = (one: unknown, item: unknown) => withoutNulls(one, root, item, depth + 1)
  const branches = branchesOf(schema)
  if (branches.length > 0) {
    const branch = branches.find((one) => fits(one, root, value))
    return branch === undefined ? value : inner(branch, value)
  }
  if (Array.isArray(value)) return schema.items === undefined ? value : value.map((item) => inner(schema.items, item))
  const { properties } = schema
  if (!isSchema(properties)) return value
  const required = requiredIn(schema)
  const isAdded = (name: string, item: unknown) =>
    item === null && Object.hasOwn(properties, name) && !required.has(name) && !allowsNull(properties[name], root)
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, item]) =>
      isAdded(name, item) ? [] : [[name, Object.hasOwn(properties, name) ? inner(properties[name], item) : item]],
    ),
  )
}

const branchesOf = ({ anyOf, oneOf = anyOf }: Schema): readonly unknown[] => (Array.isArray(oneOf) ? oneOf : [])

/** Whether a value can be of this branch of a union: all its properties are known, and its constants are the same. */
function fits(given: unknown, root: Schema, value: object): boolean {
  const schema = resolved(given, root)
  if (schema === undefined) return false
  if (Array.isArray(value)) return allows(schema, 'array')
  const { properties } = schema
  if (!isSchema(properties)) return false
  return Object.entries(value).every(([name, item]) => {
    if (!Object.hasOwn(properties, name)) return false
    const { const: only } = resolved(properties[name], root) ?? {}
    return only === undefined || only === item
  })
}

function allowsNull(given: unknown, root: Schema, depth = 0): boolean {
  const schema = resolved(given, root)
  if (schema === undefined || depth > MAX_DEPTH) return false
  const { enum: values, const: only } = schema
  if (only === null || (Array.isArray(values) && values.includes(null)) || allows(schema, 'null')) return true
  return branchesOf(schema).some((one) => allowsNull(one, root, depth + 1))
}

/** Follows references within the schema, `#/$defs/name`. */
function resolved(given: unknown, root: Schema, depth = 0): Schema | undefined {
  if (!isSchema(given) || typeof given.$ref !== 'string') return isSchema(given) ? given : undefined
  const [start, ...path] = given.$ref.split('/')
  if (start !== '#' || depth > MAX_DEPTH) return undefined
  const target = path.reduce<unknown>(
    (at, name) => (isSchema(at) ? at[name.replaceAll('~1', '/').replaceAll('~0', '~')] : undefined),
    root,
  )
  return resolved(target, root, depth + 1)
}
