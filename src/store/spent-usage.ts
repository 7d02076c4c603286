import { STEP_KINDS } from '../trajectory/step.ts'
import type { Usage } from '../trajectory/usage.ts'
import { GRADE_USAGE } from './grade-usage.ts'
import { keyOf, STEP_SPAN } from './keys.ts'
import { ROLE } from './schema.ts'
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

/**
 * A start is `replayed` if the same attempt was started again later, or will be (?3: the run is being resumed): the later start gets
 * the answers of its model calls again, and reports them itself. What other steps of it reported was paid for twice.
 */
const SQL = `WITH replayed AS (SELECT b.start FROM _starts b WHERE b.task >= ?1 AND b.task < ?2
  AND NOT EXISTS (SELECT 1 FROM _attempts a WHERE a.task = b.task AND a.start = b.start
    AND NOT (a.status = 'cancelled' AND (a.role = ${ROLE.superseded} OR ?3)))
  AND (EXISTS (SELECT 1 FROM _starts l WHERE l.task = b.task AND l.attempt = b.attempt AND l.start > b.start)
    OR ?3 AND NOT EXISTS (SELECT 1 FROM _attempts f WHERE f.task = b.task AND f.role = ${ROLE.final} AND f.status <> 'cancelled')))
SELECT ${(Object.keys(SPENT) as (keyof Usage)[]).map(sum).join(', ')} FROM (
  SELECT usage AS u FROM _attempts WHERE seq >= ?1 AND seq < ?2 AND (start IS NULL OR start NOT IN replayed)
  UNION ALL SELECT s.usage FROM _starts b JOIN _steps s ON s.key >= b.start * ${STEP_SPAN} AND s.key < (b.start + 1) * ${STEP_SPAN}
  WHERE b.task >= ?1 AND b.task < ?2 AND CASE WHEN b.start IN replayed THEN s.kind <> ${STEP_KINDS.indexOf('model')}
    ELSE NOT EXISTS (SELECT 1 FROM _attempts a WHERE a.task = b.task AND a.start = b.start) END
  UNION ALL SELECT ${GRADE_USAGE} FROM _grades n WHERE n.grade >= ?1 AND n.grade < ?2) WHERE json_valid(u)`

/**
 * What a run has spent: the usage of all attempts of its tasks and sub-tasks, also of interrupted ones, and of all grades.
 * `isResumed`: without the calls that the tasks which are run again now will report.
 */
export function spentUsage(db: DatabaseSync, run: number, isResumed = false): Usage {
  const row = checkedRow(
    prepared(db, SQL).get(keyOf(run, 0), keyOf(run + 1, 0), isResumed ? 1 : 0),
    SPENT,
    'the usage of the run',
  )
  return Object.fromEntries(Object.entries(row).filter(([, value]) => value !== null)) as Usage
}
