import { randomBytes } from 'node:crypto'
import { create } from '@bufbuild/protobuf'
import { type ColumnType, type ColumnValues, encodeColumns } from './arrow.ts'
import {
  type Command,
  CommandSchema,
  type Expression,
  ExpressionSchema,
  type Relation,
  RelationSchema,
} from './generated/spark_connect_pb.ts'

export type { Command, Relation } from './generated/spark_connect_pb.ts'

/** A value for a `:name` in a query. */
export type SqlArgument = string | number | bigint | boolean | null

/**
 * A query. In it, `{name}` stands for the relation of that name, and `:name` for an argument:
 *
 *     sql('SELECT * FROM {tasks} WHERE id > :least', { tasks: readTable('tasks') }, { least: 10n })
 *
 * Put secrets into arguments or relations: Spark quotes the text of a query in its errors.
 */
export function sql(
  query: string,
  relations: Readonly<Record<string, Relation>> = {},
  args: Readonly<Record<string, SqlArgument>> = {},
): Relation {
  const namedArguments = Object.fromEntries(Object.entries(args).map(([name, value]) => [name, literal(value)]))
  // While the query runs, each relation is a view of the whole session, so two queries must not use the same names.
  const suffix = randomBytes(8).toString('hex')
  const aliases = new Map(Object.keys(relations).map((name, index) => [name, `mw_${index}_${suffix}`]))
  const text = query.replace(/\{(\w+)\}/g, (found, name: string) => aliases.get(name) ?? found)
  const root = relation({ case: 'sql', value: { query: text, namedArguments } })
  if (aliases.size === 0) return root
  const references = Object.entries(relations).map(([name, input]) =>
    relation({ case: 'subqueryAlias', value: { input, alias: aliases.get(name)! } }),
  )
  return relation({ case: 'withRelations', value: { root, references } })
}

/** Rows from this process. Types come from the values; give the type of a column that may be empty or all null. */
export function localRelation(
  columns: Readonly<Record<string, ColumnValues>>,
  types: Readonly<Record<string, ColumnType>> = {},
): Relation {
  return relation({ case: 'localRelation', value: { data: encodeColumns(columns, types) } })
}

export interface Source {
  /** `parquet`, `json`, `csv`, ... */
  readonly format: string
  readonly paths?: readonly string[]
  readonly options?: Readonly<Record<string, string>>
  /** In Spark's DDL: `id BIGINT, text STRING`. */
  readonly schema?: string
}

export function read({ format, paths = [], options = {}, schema }: Source): Relation {
  const value = { format, paths: [...paths], options: { ...options }, ...(schema === undefined ? {} : { schema }) }
  return relation({ case: 'read', value: { readType: { case: 'dataSource', value } } })
}

export const readParquet = (paths: string | readonly string[]): Relation =>
  read({ format: 'parquet', paths: typeof paths === 'string' ? [paths] : paths })

export const readTable = (name: string): Relation =>
  relation({ case: 'read', value: { readType: { case: 'namedTable', value: { unparsedIdentifier: name } } } })

export const limit = (input: Relation, rows: number): Relation =>
  relation({ case: 'limit', value: { input, limit: rows } })

/** A statement that changes something: executed once, when it is run. */
export const sqlCommand = (...query: Parameters<typeof sql>): Command =>
  create(CommandSchema, { commandType: { case: 'sqlCommand', value: { input: sql(...query) } } })

export interface Write {
  readonly relation: Relation
  /** The destination: a folder of Parquet files, a table, or, with `format`, a path for other formats. */
  readonly to: { readonly parquet: string } | { readonly table: string } | { readonly path: string }
  /** What to do if the destination exists. Default: `error`. */
  readonly mode?: keyof typeof SAVE_MODE
  /** The format of a table or path. */
  readonly format?: string
  readonly partitionBy?: readonly string[]
  readonly options?: Readonly<Record<string, string>>
}

// spark.connect.WriteOperation.SaveMode, and SaveTable.TableSaveMethod.
const SAVE_MODE = { append: 1, overwrite: 2, error: 3, ignore: 4 } as const
const SAVE_AS_TABLE = 1

export function writeCommand({
  relation: input,
  to,
  mode = 'error',
  format,
  partitionBy = [],
  options = {},
}: Write): Command {
  const source = 'parquet' in to ? 'parquet' : format
  const value = {
    ...{ input, mode: SAVE_MODE[mode], partitioningColumns: [...partitionBy], options: { ...options } },
    ...(source === undefined ? {} : { source }),
    saveType:
      'table' in to
        ? { case: 'table' as const, value: { tableName: to.table, saveMethod: SAVE_AS_TABLE } }
        : { case: 'path' as const, value: 'parquet' in to ? to.parquet : to.path },
  }
  return create(CommandSchema, { commandType: { case: 'writeOperation', value } })
}

type RelationInit = NonNullable<NonNullable<Parameters<typeof create<typeof RelationSchema>>[1]>['relType']>

let plans = 0n

// Errors refer to plans by their numbers.
const relation = (relType: RelationInit): Relation => create(RelationSchema, { common: { planId: ++plans }, relType })

function literal(value: SqlArgument): Expression {
  const literalType =
    value === null
      ? { case: 'null' as const, value: { kind: { case: 'null' as const, value: {} } } }
      : typeof value === 'string'
        ? { case: 'string' as const, value }
        : typeof value === 'boolean'
          ? { case: 'boolean' as const, value }
          : typeof value === 'bigint'
            ? { case: 'long' as const, value }
            : numberLiteral(value)
  return create(ExpressionSchema, { exprType: { case: 'literal', value: { literalType } } })
}

/** A whole number becomes a whole number in SQL too; a small one an INT, because LIMIT needs that. */
function numberLiteral(value: number) {
  if (value === (value | 0)) return { case: 'integer' as const, value }
  return Number.isSafeInteger(value)
    ? { case: 'long' as const, value: BigInt(value) }
    : { case: 'double' as const, value }
}
