import { beginningOf } from '../../text/beginning.ts'
import type { LogLines } from '../api.ts'
import { MOST_CHARS } from './cut-texts.ts'

const MOST_LINES = 500
const MOST_LOG_CHARS = 100_000

/** The beginning of the logs of an attempt. A line that is cut counts as left out. */
export function cutLogs(lines: readonly string[]): LogLines {
  const shown: string[] = []
  let chars = 0
  for (const line of lines) {
    if (shown.length >= MOST_LINES || chars >= MOST_LOG_CHARS) break
    const beginning = beginningOf(line, MOST_CHARS)
    chars += beginning.length
    shown.push(beginning)
    if (beginning.length < line.length) return { lines: shown, left: lines.length - shown.length + 1 }
  }
  return { lines: shown, left: lines.length - shown.length }
}
