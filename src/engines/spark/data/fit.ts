import type { SparkType } from '../connect/types.ts'
import { decimal, refuse, SCALARS } from './fit-scalars.ts'
import { type Budget, isNoValue, jsonText, spend } from './json-text.ts'
import { at, Misfit } from './misfit.ts'
import { kindInWords } from './words.ts'

/** Converts a value to the JSON that Spark reads for a type. Throws a `Misfit` if the type cannot hold the value exactly. */
export type Fit = (value: unknown, budget: Budget) => string

export function fitFor(type: SparkType): Fit {
  const fit = fitValue(type)
  return (value, budget) => {
    if (value === null || value === undefined) return 'null'
    spend(budget, 1)
    if (isNoValue(value)) throw new Misfit(`${kindInWords(value)}, which cannot be in a row`)
    return fit(value, budget)
  }
}

function fitValue(type: SparkType): Fit {
  switch (type.name) {
    case 'string':
      return textOf
    case 'decimal':
      return decimal(type.precision, type.scale)
    case 'array':
      return arrayOf(fitFor(type.element))
    case 'map':
      return mapOf(fitFor(type.value))
    case 'struct':
      return structOf(type.fields.map(({ name, type }) => [name, fitFor(type)]))
    case 'other':
      return asGiven
    default:
      return SCALARS[type.name]
  }
}

/** Other values than text become JSON. */
function textOf(value: unknown, budget: Budget): string {
  if (typeof value === 'string') return wellFormed(value)
  const json = jsonText(value, budget)
  if (json === undefined) return 'null'
  return json.startsWith('"') ? wellFormed(JSON.parse(json)) : JSON.stringify(json)
}

function wellFormed(text: string): string {
  if (text.isWellFormed()) return JSON.stringify(text)
  throw new Misfit('text with half of a surrogate pair, which UTF-8 has no bytes for; give text.toWellFormed()')
}

/** For types that Spark can read but this file does not know. */
function asGiven(value: unknown, budget: Budget): string {
  const json = jsonText(value, budget) ?? 'null'
  // JSON.stringify writes `\ud…` only for half of a surrogate pair.
  if (/(?<!\\)(?:\\\\)*\\ud/.test(json)) throw new Misfit('half of a surrogate pair, which UTF-8 has no bytes for')
  return json
}

function arrayOf(fit: Fit): Fit {
  return (value, budget) => {
    const list = listOf(value) ?? refuse(value, 'array', 'an array')
    spend(budget, list.length)
    // Array.from visits the holes of the array too; `map` would skip them.
    return `[${Array.from(list, (one, index) => at(index, () => fit(one, budget))).join(',')}]`
  }
}

function listOf(value: unknown): ArrayLike<unknown> | undefined {
  if (value instanceof Set) return [...value]
  if (ArrayBuffer.isView(value) && !(value instanceof DataView)) return value as unknown as ArrayLike<unknown>
  const its = plain(value)
  return Array.isArray(its) ? its : undefined
}

function mapOf(fit: Fit): Fit {
  return (value, budget) => {
    const fields: string[] = []
    for (const [key, one] of entriesOf(value, 'map')) {
      if (typeof key !== 'string') throw new Misfit(`a Map with ${kindInWords(key)} as a key; keys must be text`)
      fields.push(at(key, () => `${wellFormed(key)}:${fit(one, budget)}`))
    }
    return `{${fields.join(',')}}`
  }
}

function structOf(fields: readonly (readonly [name: string, Fit])[]): Fit {
  const named = fields.map(([name, fit]) => ({ name, start: `${JSON.stringify(name)}:`, fit }))
  return (value, budget) => {
    const given = new Map(entriesOf(value, 'struct'))
    return `{${named.map(({ name, start, fit }) => start + at(name, () => fit(given.get(name), budget))).join(',')}}`
  }
}

function entriesOf(value: unknown, type: string): Iterable<readonly [unknown, unknown]> {
  if (value instanceof Map) return value
  const its = plain(value)
  const isObject = typeof its === 'object' && its !== null && !Array.isArray(its) && !ArrayBuffer.isView(its)
  if (!isObject || its instanceof Date || its instanceof Set) return refuse(value, type, 'an object or a Map')
  return Object.entries(its)
}

/** The plain value of an object: the result of its `toJSON`, or the name and message of an error. */
function plain(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || value instanceof Date) return value
  if ('toJSON' in value && typeof value.toJSON === 'function') return value.toJSON('')
  return value instanceof Error ? { name: value.name, message: value.message } : value
}
