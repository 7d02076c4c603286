/**
 * SQL for the usage of a grader, as JSON, from a row `n` of `_grades`; NULL if it reported none. `usage` is the first field of a
 * stored grade (`grade/grading-task.ts`), so the preview of a large grade contains it.
 */
const TEXT = `CASE typeof(n.record) WHEN 'text' THEN n.record
  ELSE (SELECT CASE is_cut WHEN 0 THEN preview ELSE json_extract(preview, '$') END FROM _blobs WHERE blob = n.record) END`

const BEGINNING = '{"usage":'

export const GRADE_USAGE = `(SELECT CASE WHEN json_valid(u) THEN u END FROM (SELECT CASE WHEN substr(r, 1, ${BEGINNING.length}) = '${BEGINNING}'
  THEN substr(r, ${BEGINNING.length + 1}, instr(r, '}') - ${BEGINNING.length}) END AS u FROM (SELECT ${TEXT} AS r)))`

/** The usage of the grader whose grade counts for task `t`. */
export const LATEST_GRADE_USAGE = `(SELECT ${GRADE_USAGE} FROM _grades n WHERE n.task = t.task ORDER BY n.grade DESC LIMIT 1)`
