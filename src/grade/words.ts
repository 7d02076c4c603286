import { counted } from '../text/quantities.ts'
import type { Estimate } from './intervals.ts'
import type { EvaluationSummary } from './summarize.ts'

/** `82.0 %` */
export const rateText = (value: number): string => `${(100 * value).toFixed(1)} %`

/** `95 %`, `99.9 %` */
export const confidenceText = (confidence: number): string => `${Number((100 * confidence).toFixed(2))} %`

/** `82.0 % (95 % interval 70.1 to 90.2)`. The ends are rounded outwards, so that the interval never looks narrower than it is. */
export function describeRate({ value, low, high, confidence }: Estimate): string {
  return `${rateText(value)} (${confidenceText(confidence)} interval ${outwards(100 * low, -1, 1)} to ${outwards(100 * high, 1, 1)})`
}

/** `0.742 (95 % interval 0.688 to 0.791)` */
export function describeReward({ value, low, high, confidence }: Estimate): string {
  return `${value.toFixed(3)} (${confidenceText(confidence)} interval ${outwards(low, -1, 3)} to ${outwards(high, 1, 3)})`
}

/** `40 tasks`, `40 tasks, 20 with a result` */
export function describeTasks({ tasks, success }: Pick<EvaluationSummary, 'tasks' | 'success'>): string {
  const withResult = success?.tasks ?? 0
  return withResult === tasks ? counted(tasks, 'task') : `${counted(tasks, 'task')}, ${withResult} with a result`
}

/** Rounds down (-1) or up (1). */
export function outwards(value: number, direction: -1 | 1, digits: number): string {
  if (!Number.isFinite(value)) return value < 0 ? '-∞' : '∞'
  const unit = 10 ** digits
  // Ignore what floating-point rounding adds beyond the last digit.
  const scaled = Number((value * unit).toPrecision(12))
  const rounded = (direction < 0 ? Math.floor(scaled) : Math.ceil(scaled)) / unit
  return (rounded === 0 ? 0 : rounded).toFixed(digits)
}
