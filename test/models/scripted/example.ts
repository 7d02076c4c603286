import type { Schema } from './request.ts'

const DEPTH = 8

/** A value of this schema. */
export function exampleOf(schema: Schema | undefined, random: () => number, depth = 0): unknown {
  if (schema === undefined || depth > DEPTH) return null
  if (schema.const !== undefined) return schema.const
  if (schema.enum !== undefined) return schema.enum[Math.floor(random() * schema.enum.length)]
  if (schema.anyOf !== undefined)
    return schema.anyOf.some(({ type }) => type === 'null') ? null : exampleOf(schema.anyOf[0], random, depth + 1)
  // A model leaves out what it need not say.
  if (Array.isArray(schema.type)) return null
  switch (schema.type) {
    case 'object':
      return mapProperties(schema, (property) => exampleOf(property, random, depth + 1))
    case 'array':
      return [exampleOf(schema.items, random, depth + 1)]
    case 'string':
      return `word-${Math.floor(random() * 1000)}`
    case 'integer':
    case 'number':
      return Math.floor(random() * 1000)
    case 'boolean':
      return random() < 0.5
    default:
      return null
  }
}

/** An object with the properties of this schema, all of them of a wrong type. */
export const wrongExampleOf = (schema: Schema | undefined): unknown =>
  mapProperties(schema ?? {}, ({ type }) => (type === 'string' ? 7 : 'of a wrong type'))

const mapProperties = ({ properties = {} }: Schema, value: (property: Schema) => unknown) =>
  Object.fromEntries(Object.entries(properties).map(([name, property]) => [name, value(property)]))
