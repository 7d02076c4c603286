import { ManyworldsError } from '../errors.ts'
import { oneLine } from '../text/escape-controls.ts'
import { counted } from '../text/quantities.ts'
import type { EvaluationSummary, UnsolvedTask } from './summarize.ts'
import { confidenceText, describeRate, outwards, rateText } from './words.ts'

/** Whether a run shows that its agent solves at least a given share of all such tasks. */
export interface ThresholdVerdict {
  readonly passed: boolean
  /** Counts, interval and unsolved tasks, one line each; the first line is the conclusion. */
  readonly lines: readonly string[]
}

const MAX_TASKS_SHOWN = 20

/** Passes only if the whole interval is at or above `rate`. A run with few tasks rarely passes, even with good results. */
export function atLeast(summary: EvaluationSummary, rate: number): ThresholdVerdict {
  if (!(rate > 0 && rate < 1))
    throw new ManyworldsError(
      'CONFIG_INVALID',
      `the rate to pass must be a number above 0 and below 1, such as 0.9, it is ${rate}. A rate of 1 cannot be shown with any number of tasks`,
    )
  const { success, solved, unsolved } = summary
  if (!success)
    return {
      passed: false,
      lines: [`cannot show a success rate of ${rateText(rate)}: no rollout has a result`, ...apart(summary)],
    }
  const passed = success.low >= rate
  const confidence = confidenceText(success.confidence)
  const first = passed
    ? `at least ${rateText(rate)} of tasks are solved, with ${confidence} confidence`
    : `expected at least ${rateText(rate)} of tasks to be solved, with ${confidence} confidence; the interval starts at ${outwards(100 * success.low, -1, 1)} %`
  const counts = `solved ${solved} of ${counted(solved + unsolved, 'rollout')} of ${counted(success.tasks, 'task')}: ${describeRate(success)}`
  return {
    passed,
    lines: [
      first,
      counts,
      ...unsolvedLine(summary.unsolvedTasks),
      ...apart(summary),
      ...(passed ? [] : neededLine(rate, success.tasks, success.confidence)),
    ],
  }
}

function unsolvedLine(tasks: readonly UnsolvedTask[]): string[] {
  if (tasks.length === 0) return []
  const shown = tasks.slice(0, MAX_TASKS_SHOWN).map(({ id, solved, rollouts, reasons }) => {
    const notes = [...(rollouts > 1 ? [`${solved} of ${rollouts}`] : []), ...reasons]
    return notes.length > 0 ? `${oneLine(id)} (${notes.join(', ')})` : oneLine(id)
  })
  const more = tasks.length - shown.length
  return [`unsolved: ${shown.join(', ')}${more > 0 ? ` and ${more} more` : ''}`]
}

/** The rollouts that do not count. */
function apart({ withoutResult, failures }: EvaluationSummary): string[] {
  if (withoutResult === 0) return []
  const reasons = Object.entries(failures.infrastructure)
    .map(([code, count]) => `${count} ${code}`)
    .join(', ')
  return [`not counted: ${counted(withoutResult, 'rollout')} without a result: ${reasons}`]
}

function neededLine(rate: number, tasks: number, confidence: number): string[] {
  const needed = tasksNeeded(rate, confidence)
  if (tasks >= needed) return []
  return [
    `${counted(tasks, 'task')} cannot show this even if all are solved: at least ${counted(needed, 'task')} are needed`,
  ]
}

/** How many tasks are needed, if all are solved, for the interval to start at `rate`. */
export const tasksNeeded = (rate: number, confidence: number): number =>
  Math.ceil(Math.log((1 - confidence) / 2) / Math.log(rate))
