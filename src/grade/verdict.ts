import { oneLine } from '../text/escape-controls.ts'
import { counted } from '../text/quantities.ts'
import type { ComparedApart, Difference } from './compare.ts'
import { confidenceText, outwards } from './words.ts'

/** Which run is better, in one sentence. */
export function comparisonVerdict(
  success: Difference | null,
  [nameA, nameB]: readonly [a: string, b: string] = ['A', 'B'],
): string {
  if (!success) return 'nothing to compare: no task has a result in both runs'
  const { value, low, high, confidence, tasks } = success
  const points = (share: number) => (100 * share).toFixed(1)
  const interval = (from: number, to: number) =>
    `${confidenceText(confidence)} interval ${outwards(100 * from, -1, 1)} to ${outwards(100 * to, 1, 1)}`
  if (low > 0) return `${nameB} is better by ${points(value)} points (${interval(low, high)})`
  if (high < 0) return `${nameA} is better by ${points(-value)} points (${interval(-high, -low)})`
  const sign = value > 0 ? '+' : ''
  return `no significant difference over ${counted(tasks, 'task')}: ${nameB} minus ${nameA} is ${sign}${points(value)} points (${interval(low, high)})`
}

const SHOWN = 5

/** What makes two runs incomparable. */
export function apartText(
  { tasks, graders }: ComparedApart,
  [nameA, nameB]: readonly [a: string, b: string] = ['A', 'B'],
): string {
  const some = tasks.slice(0, SHOWN).map(oneLine).join(', ')
  const more = tasks.length > SHOWN ? ` and ${tasks.length - SHOWN} more` : ''
  const asked = `${counted(tasks.length, 'task')} ${tasks.length === 1 ? 'has' : 'have'} another input or ground truth: ${some}${more}`
  const graded = graders
    .slice(0, SHOWN)
    .map(({ a, b, tasks }) => `${oneLine(a)} in ${nameA} but ${oneLine(b)} in ${nameB} (${counted(tasks, 'task')})`)
  return [
    ...(tasks.length > 0 ? [asked] : []),
    ...(graded.length > 0 ? [`the grader is ${graded.join(', ')}`] : []),
  ].join('; ')
}
