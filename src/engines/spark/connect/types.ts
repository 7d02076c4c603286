import type { DataType } from './generated/spark_connect_pb.ts'

/** A Spark type. `other`: one without a JavaScript counterpart, such as an interval. */
export type SparkType =
  | { readonly name: SimpleType | 'other' }
  | { readonly name: 'decimal'; readonly precision: number; readonly scale: number }
  | { readonly name: 'array'; readonly element: SparkType }
  | { readonly name: 'map'; readonly key: SparkType; readonly value: SparkType }
  | { readonly name: 'struct'; readonly fields: readonly SparkField[] }

type SimpleType = (typeof SIMPLE)[keyof typeof SIMPLE]

export interface SparkField {
  readonly name: string
  readonly type: SparkType
}

const SIMPLE = {
  ...({ boolean: 'boolean', byte: 'tinyint', short: 'smallint', integer: 'int', long: 'bigint' } as const),
  ...({ float: 'float', double: 'double', string: 'string', binary: 'binary', date: 'date' } as const),
  ...({ timestamp: 'timestamp', timestampNtz: 'timestamp_ntz' } as const),
} as const

// Spark's defaults, which it leaves out of a decimal's type.
const [DEFAULT_PRECISION, DEFAULT_SCALE] = [10, 0]

export function sparkType(type: DataType | undefined): SparkType {
  const kind = type?.kind ?? { case: undefined }
  switch (kind.case) {
    case undefined:
    case 'null':
      return { name: 'other' }
    case 'decimal': {
      const { precision = DEFAULT_PRECISION, scale = DEFAULT_SCALE } = kind.value
      return { name: 'decimal', precision, scale }
    }
    case 'array':
      return { name: 'array', element: sparkType(kind.value.elementType) }
    case 'map':
      return { name: 'map', key: sparkType(kind.value.keyType), value: sparkType(kind.value.valueType) }
    case 'struct':
      return { name: 'struct', fields: sparkFields(type) }
    default:
      return { name: SIMPLE[kind.case] }
  }
}

/** The fields of a struct. The schema of a relation is a struct too. */
export const sparkFields = (type: DataType | undefined): SparkField[] =>
  type?.kind.case === 'struct'
    ? type.kind.value.fields.map(({ name, dataType }) => ({ name, type: sparkType(dataType) }))
    : []
