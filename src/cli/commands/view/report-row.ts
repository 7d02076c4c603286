import { BottomRow } from '../../../progress/bottom-row.ts'
import { canBeRedrawn } from '../../../progress/choose.ts'
import { fieldLine } from '../../../progress/field-line.ts'
import { painter, wantsColor } from '../../../text/paint.ts'
import { bytes, count } from '../../../text/quantities.ts'
import type { ReportProgress } from '../../../view/report.ts'

/**
 * Shows the progress of a report in a row at the bottom of the terminal. Not shown elsewhere, because even a large report
 * takes only half a minute.
 */
export async function withReportRow<T>(
  maxBytes: number,
  make: (progress: (progress: ReportProgress) => void) => Promise<T>,
): Promise<T> {
  const { stderr } = process
  if (!canBeRedrawn(stderr)) return await make(() => {})
  let last: ReportProgress | undefined
  const paint = painter(wantsColor(stderr))
  const text = (width: number) => (last ? reportLine(last, { maxBytes, width, paint }) : 'reading the run')
  const row = new BottomRow(stderr, [process.stdout], text)
  row.show()
  try {
    return await make((progress) => {
      last = progress
    })
  } finally {
    row.hide()
  }
}

interface Layout {
  readonly maxBytes: number
  readonly width: number
  readonly paint: ReturnType<typeof painter>
}

/** `[####......]  1,234/5,678  steps of failed tasks  12 MB of 20 MB` */
function reportLine({ doing, done, total, bytes: size }: ReportProgress, { maxBytes, width, paint }: Layout): string {
  const fields = [
    { text: `${count(done)}/${count(total)}`, rank: 1 },
    { text: doing, rank: 0 },
    { text: `${bytes(size)} of ${bytes(maxBytes)}`, rank: 2 },
  ]
  return fieldLine(fields, { width, paint, bar: { done, total } })
}
