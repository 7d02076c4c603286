import { ManyworldsError } from '../../../errors.ts'
import { quoted } from './slices.ts'
import { knownNames } from './words.ts'

type Row = Readonly<Record<string, unknown>>

/** The columns of what is written: known, or to be found out from the first rows. */
export interface Columns {
  /** Throws, if a row has a column that does not fit. */
  see(row: Row): void
  /** In Spark's words. From then on, all rows must fit. */
  readonly schema: string
}

export class KnownColumns implements Columns {
  readonly schema: string
  readonly names: ReadonlySet<string>

  constructor(schema: string, names: readonly string[]) {
    this.schema = schema
    this.names = new Set(names)
  }

  see(row: Row): void {
    for (const name in row)
      if (!this.names.has(name)) {
        const known = [...this.names]
        throw new ManyworldsError(
          'CONFIG_INVALID',
          `it has a column '${name}', which is not in the schema${knownNames(name, known, known.join(', '))}`,
        )
      }
  }
}

type Kind = 'boolean' | 'integer' | 'bigint' | 'double' | 'string' | 'timestamp' | 'binary'

export class GuessedColumns implements Columns {
  /** By name; undefined: only nulls so far. */
  readonly #kinds = new Map<string, Kind | undefined>()
  #schema: string | undefined

  see(row: Row): void {
    for (const name in row) {
      const known = this.#kinds.get(name)
      if (this.#schema === undefined) this.#kinds.set(name, merged(known, kindOf(row[name])))
      else if (!this.#kinds.has(name))
        throw new ManyworldsError(
          'CONFIG_INVALID',
          `it has a column '${name}', which no row of the first batch had: say with \`schema\` which columns there are`,
        )
    }
  }

  get schema(): string {
    if (this.#kinds.size === 0)
      throw new ManyworldsError(
        'CONFIG_INVALID',
        'sparkSink: there was no row, and so it is not known which columns there are: say it with `schema`',
      )
    this.#schema ??= [...this.#kinds].map(([name, kind]) => `${quoted(name)} ${typeFor(kind)}`).join(', ')
    return this.#schema
  }
}

function kindOf(value: unknown): Kind | undefined {
  switch (typeof value) {
    case 'boolean':
    case 'bigint':
    case 'string':
      return typeof value as Kind
    case 'number':
      return Number.isSafeInteger(value) ? 'integer' : 'double'
    case 'object':
      if (value === null) return undefined
      return value instanceof Date ? 'timestamp' : value instanceof Uint8Array ? 'binary' : 'string'
    default:
      return undefined
  }
}

/** Text can hold everything. */
function merged(one: Kind | undefined, other: Kind | undefined): Kind | undefined {
  if (one === undefined || other === undefined || one === other) return one ?? other
  const both = [one, other]
  if (both.includes('integer')) {
    if (both.includes('double')) return 'double'
    if (both.includes('bigint')) return 'bigint'
  }
  return 'string'
}

/** A number that is whole in the first rows need not be in the next. */
const typeFor = (kind: Kind | undefined): string =>
  kind === undefined ? 'string' : kind === 'integer' ? 'double' : kind
