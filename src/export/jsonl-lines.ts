import { plainError } from '../response.ts'
import type { ResponseRow } from '../store/run-rows.ts'
import type { Table } from './columns.ts'
import { jsonText } from './json-text.ts'

/** The pieces of a line of JSON: a row as `RunFile` gives it. */
export function* jsonlLine(table: Table<never>, row: object): Generator<string> {
  if (table.line) yield* table.line(row as never)
  else if (table.what === 'responses') yield* responseLine(row as ResponseRow)
  else yield `${jsonText(withoutNothing(row))}\n`
}

/** A trajectory is written step by step: it may be longer than a text can be. */
function* responseLine({ response, steps, success: _, ending: __, ...known }: ResponseRow): Generator<string> {
  const { trajectory: ___, ...fields } = {
    trajectory: undefined,
    ...withoutNothing(known),
    ...withoutNothing(response),
  }
  const error = response.success ? {} : { error: plainError(response.error) }
  yield `${jsonText({ ...fields, ...error }).slice(0, -1)},"trajectory":[`
  let separator = ''
  for (const step of steps()) {
    yield separator + jsonText(step)
    separator = ','
  }
  yield ']}\n'
}

/** Without fields that are there and have no value. */
const withoutNothing = (row: object): object =>
  Object.fromEntries(Object.entries(row).filter(([, value]) => value !== undefined && value !== null))
