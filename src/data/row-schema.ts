/** A schema of zod, valibot, arktype or any other library that follows https://standardschema.dev. */
export interface RowSchema<Row = unknown> {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: string
    readonly validate: (value: unknown) => SchemaResult<Row> | Promise<SchemaResult<Row>>
    readonly types?: { readonly input: unknown; readonly output: Row } | undefined
  }
}

export type RowOf<Schema> = Schema extends RowSchema<infer Row> ? Row : never

export type SchemaResult<Row> =
  | { readonly value: Row; readonly issues?: undefined }
  | { readonly issues: readonly SchemaIssue[] }

export interface SchemaIssue {
  readonly message: string
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined
}

const MAX_ISSUES = 3

/** `` `answer`: expected a string; `level`: … `` */
export function schemaProblem(issues: readonly SchemaIssue[]): string {
  const said = issues.slice(0, MAX_ISSUES).map(({ message, path = [] }) => {
    const keys = path.map((part) => String(typeof part === 'object' ? part.key : part))
    return keys.length === 0 ? message : `\`${keys.join('.')}\`: ${message}`
  })
  const more = issues.length - said.length
  return `the row does not match the schema: ${said.join('; ')}${more > 0 ? `; and ${more} more` : ''}`
}

export function isRowSchema(value: unknown): boolean {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return false
  const standard = (value as Partial<RowSchema>)['~standard']
  return typeof standard === 'object' && typeof standard.validate === 'function'
}
