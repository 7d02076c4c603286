import type { RequestBody } from './request.ts'

/** Why OpenAI refuses the schema of a request with `strict: true`, in its words. Undefined if it does not. */
export function strictProblem({ response_format }: RequestBody): string | undefined {
  const { schema, strict, name } = (response_format?.json_schema ?? {}) as {
    schema?: unknown
    strict?: unknown
    name?: string
  }
  if (strict !== true) return undefined
  const problem = rootProblem(schema) ?? problemIn(schema, [])
  return problem && `Invalid schema for response_format '${name}': ${problem}`
}

type Schema = Record<string, unknown>

const rootProblem = (schema: unknown) =>
  (schema as Schema | undefined)?.type === 'object' ? undefined : `schema must be a JSON Schema of 'type: "object"'.`

const REFUSED = ['allOf', 'oneOf', 'not', 'if', 'patternProperties', 'default', 'dependentRequired', 'propertyNames']

function problemIn(schema: unknown, path: readonly string[]): string | undefined {
  const context = `In context=(${path.map((part) => `'${part}'`).join(', ')}),`
  if (typeof schema !== 'object' || schema === null) return `${context} schema must be an object.`
  const { properties, required, additionalProperties, items, anyOf, $defs, type } = schema as Schema
  const refused = REFUSED.find((keyword) => keyword in schema)
  if (refused !== undefined) return `${context} '${refused}' is not permitted.`
  if (!['type', 'anyOf', '$ref', 'enum', 'const'].some((key) => key in schema))
    return `${context} schema must have a 'type' key.`
  if (type === 'object' || (Array.isArray(type) && type.includes('object'))) {
    if (additionalProperties !== false)
      return `${context} 'additionalProperties' is required to be supplied and to be false.`
    const missing = Object.keys((properties ?? {}) as object).find((key) => !(required as string[])?.includes(key))
    if (missing !== undefined)
      return `${context} 'required' is required to be supplied and to be an array including every key in properties. Missing '${missing}'.`
  }
  const inside: [string[], unknown][] = [
    ...Object.entries((properties ?? {}) as Schema).map(([key, one]): [string[], unknown] => [
      ['properties', key],
      one,
    ]),
    ...Object.entries(($defs ?? {}) as Schema).map(([key, one]): [string[], unknown] => [['$defs', key], one]),
    ...((anyOf ?? []) as unknown[]).map((one, index): [string[], unknown] => [['anyOf', String(index)], one]),
    ...(items === undefined ? [] : ([[['items'], items]] as [string[], unknown][])),
  ]
  for (const [key, one] of inside) {
    const problem = problemIn(one, [...path, ...key])
    if (problem !== undefined) return problem
  }
  return undefined
}
