import { ManyworldsError } from '../../../errors.ts'

/** The details of a Spark error. */
export interface SparkErrorOptions {
  readonly cause?: unknown
  readonly errorClass?: string | undefined
  readonly sqlState?: string | undefined
  readonly grpcCode?: number | undefined
  readonly causes?: readonly string[] | undefined
}

const MARKER = Symbol.for('manyworlds.spark-error')

/**
 * An error that Spark reported, or the reason why it could not be reached. Its `code` is `SPARK_FAILED`.
 *
 * @example
 * try {
 *   for await (const row of sparkRows({ table: 'questions' })) console.log(row)
 * } catch (error) {
 *   if (SparkError.is(error) && error.errorClass === 'TABLE_OR_VIEW_NOT_FOUND') console.error('there is no such table')
 *   else throw error
 * }
 */
export class SparkError extends ManyworldsError {
  readonly [MARKER] = true
  /** Spark's error class, such as `TABLE_OR_VIEW_NOT_FOUND`. */
  readonly errorClass: string | undefined
  readonly sqlState: string | undefined
  /** The gRPC status code. */
  readonly grpcCode: number | undefined
  /** The messages of its causes, the nearest first. The last one has the stderr of a failed program. */
  readonly causes: readonly string[]

  constructor(message: string, { cause, errorClass, sqlState, grpcCode, causes = [] }: SparkErrorOptions = {}) {
    super('SPARK_FAILED', message, cause === undefined ? undefined : { cause })
    this.name = 'SparkError'
    this.errorClass = errorClass
    this.sqlState = sqlState
    this.grpcCode = grpcCode
    this.causes = causes
  }

  /** Whether the value is a SparkError, also one of another copy of this package. */
  static override is(value: unknown): value is SparkError {
    return typeof value === 'object' && value !== null && MARKER in value
  }
}
