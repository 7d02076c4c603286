import type { Usage } from '../trajectory/usage.ts'
import { GRADE_USAGE } from './grade-usage.ts'
import { keyOf, STEP_SPAN } from './keys.ts'
import { type DatabaseSync, prepared } from './sqlite.ts'
import { type Columns, checkedRow, isNumber, orNull } from './stored-shapes.ts'

type SpentColumns = { readonly [Key in keyof Required<Usage>]: number | null }

const SPENT: Columns<SpentColumns> = {
  inputTokens: orNull(isNumber),
  outputTokens: orNull(isNumber),
  cachedTokens: orNull(isNumber),
  costUsd: orNull(isNumber),
}

const sum = (key: keyof Usage) => `sum(u ->> '$.${key}') AS ${key}`

const SQL = `SELECT ${(Object.keys(SPENT) as (keyof Usage)[]).map(sum).join(', ')} FROM (
  SELECT usage AS u FROM _attempts WHERE seq >= ? AND seq < ?
  UNION ALL SELECT s.usage FROM _starts b JOIN _steps s ON s.key >= b.start * ${STEP_SPAN} AND s.key < (b.start + 1) * ${STEP_SPAN}
  WHERE b.task >= ? AND b.task < ? AND NOT EXISTS (SELECT 1 FROM _attempts a WHERE a.task = b.task AND a.start = b.start)
  UNION ALL SELECT ${GRADE_USAGE} FROM _grades n WHERE n.grade >= ? AND n.grade < ?) WHERE json_valid(u)`

/** What a run has spent: the usage of all attempts of its tasks and sub-tasks, also of interrupted ones, and of all grades. */
export function spentUsage(db: DatabaseSync, run: number): Usage {
  const range = [keyOf(run, 0), keyOf(run + 1, 0)] as const
  const row = checkedRow(prepared(db, SQL).get(...range, ...range, ...range), SPENT, 'the usage of the run')
  return Object.fromEntries(Object.entries(row).filter(([, value]) => value !== null)) as Usage
}
