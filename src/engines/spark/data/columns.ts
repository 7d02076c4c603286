import { ManyworldsError } from '../../../errors.ts'
import type { SparkField } from '../connect/types.ts'
import { type Fit, fitFor } from './fit.ts'
import { quoted } from './slices.ts'
import { knownNames } from './words.ts'

type Row = Readonly<Record<string, unknown>>

/** The columns to write: known from a schema, or guessed from the first rows. */
export interface Columns {
  /** Takes note of a row's columns. Throws if one of them is unknown. */
  see(row: Row): void
  /** Whether the types are known. Reading `schema` or `fits()` decides them. */
  readonly decided: boolean
  /** The schema in Spark's notation. Decides the types. */
  readonly schema: string
  /** By column, the function that converts its values. Decides the types. */
  fits(): ReadonlyMap<string, Fit>
}

export class KnownColumns implements Columns {
  readonly decided = true
  readonly schema: string
  readonly #fits: ReadonlyMap<string, Fit>

  constructor(schema: string, fields: readonly SparkField[]) {
    this.schema = schema
    this.#fits = new Map(fields.map(({ name, type }) => [name, fitFor(type)]))
  }

  see(row: Row): void {
    for (const name in row)
      if (!this.#fits.has(name)) {
        const known = [...this.#fits.keys()]
        throw new ManyworldsError(
          'CONFIG_INVALID',
          `it has a column '${name}', which is not in the schema${knownNames(name, known, known.join(', '))}`,
        )
      }
  }

  fits(): ReadonlyMap<string, Fit> {
    return this.#fits
  }
}

type Kind = 'boolean' | 'integer' | 'bigint' | 'double' | 'string' | 'timestamp' | 'binary'

export class GuessedColumns implements Columns {
  /** By column name. Undefined: only nulls so far. */
  readonly #kinds = new Map<string, Kind | undefined>()
  #fits: ReadonlyMap<string, Fit> | undefined

  see(row: Row): void {
    for (const name in row) {
      const known = this.#kinds.get(name)
      if (!this.decided) this.#kinds.set(name, merged(known, kindOf(row[name])))
      else if (!this.#kinds.has(name))
        throw new ManyworldsError(
          'CONFIG_INVALID',
          `it has a column '${name}', which no row of the first batch had; list all columns with \`schema\``,
        )
    }
  }

  get decided(): boolean {
    return this.#fits !== undefined
  }

  fits(): ReadonlyMap<string, Fit> {
    this.#fits ??= new Map([...this.#kinds].map(([name, kind]) => [name, fitFor({ name: typeFor(kind) })]))
    return this.#fits
  }

  get schema(): string {
    if (this.#kinds.size === 0)
      throw new ManyworldsError(
        'CONFIG_INVALID',
        'sparkSink: there was no row, so the columns are not known; list them with `schema`',
      )
    this.fits()
    return [...this.#kinds].map(([name, kind]) => `${quoted(name)} ${typeFor(kind)}`).join(', ')
  }
}

function kindOf(value: unknown): Kind | undefined {
  switch (typeof value) {
    case 'boolean':
    case 'string':
      return typeof value as Kind
    case 'bigint':
      return BigInt.asIntN(64, value) === value ? 'bigint' : 'string'
    case 'number':
      return Number.isSafeInteger(value) && !Object.is(value, -0) ? 'integer' : 'double'
    case 'object':
      if (value === null) return undefined
      return value instanceof Date ? 'timestamp' : value instanceof Uint8Array ? 'binary' : 'string'
    default:
      return undefined
  }
}

/** The kind that can hold both. Text can hold everything. */
function merged(one: Kind | undefined, other: Kind | undefined): Kind | undefined {
  if (one === undefined || other === undefined || one === other) return one ?? other
  const both = [one, other]
  if (both.includes('integer')) {
    if (both.includes('double')) return 'double'
    if (both.includes('bigint')) return 'bigint'
  }
  return 'string'
}

/** Integers become doubles, because numbers that are whole in the first rows may have fractions later. */
const typeFor = (kind: Kind | undefined) => (kind === undefined ? 'string' : kind === 'integer' ? 'double' : kind)
