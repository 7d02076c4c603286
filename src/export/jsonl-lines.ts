import { plainError } from '../response.ts'
import type { ResponseRow } from '../store/run-rows.ts'
import type { Table } from './columns.ts'
import { jsonText } from './json-text.ts'

/** The parts of a JSON line: a row as `RunFile` returns it. */
export function* jsonlLine(table: Table<never>, row: object): Generator<string> {
  if (table.line) yield* table.line(row as never)
  else if (table.what === 'responses') yield* responseLine(row as ResponseRow)
  else yield `${jsonText(withoutEmptyFields(row))}\n`
}

/** Writes a trajectory step by step, because it may be longer than a string can be. */
function* responseLine({ response, steps, success: _, ending: __, ...known }: ResponseRow): Generator<string> {
  const { trajectory: ___, ...fields } = {
    trajectory: undefined,
    ...withoutEmptyFields(known),
    ...withoutEmptyFields(response),
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

/** Removes fields without a value. */
const withoutEmptyFields = (row: object): object =>
  Object.fromEntries(Object.entries(row).filter(([, value]) => value !== undefined && value !== null))
