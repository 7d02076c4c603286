import { ManyworldsError } from '../errors.ts'
import { oneLine } from '../text/escape-controls.ts'
import { counted } from '../text/quantities.ts'
import type { EvaluationSummary, UnsolvedTask } from './summarize.ts'
import { confidenceText, describeRate, describeTasks, outwards, rateText } from './words.ts'

/** Whether a run shows that its agent solves at least a given share of all such tasks. */
export interface ThresholdVerdict {
  readonly passed: boolean
  /** Counts, interval and unsolved tasks, one line each; the first line is the conclusion. */
  readonly lines: readonly string[]
}

export interface ThresholdOptions {
  /** The largest share of rollouts without a result; with more, the run fails whatever the others show. Default 0.02. */
  readonly maxUngraded?: number
}

const MAX_TASKS_SHOWN = 20
export const MAX_UNGRADED = 0.02

/**
 * Passes only if the results show, with the confidence of the summary, that at least this share of all such tasks is solved, and
 * if nearly all rollouts have a result: what is missing need not be like the rest. A run with few tasks rarely passes, even with
 * good results.
 */
export function atLeast(
  summary: EvaluationSummary,
  rate: number,
  { maxUngraded = MAX_UNGRADED }: ThresholdOptions = {},
): ThresholdVerdict {
  if (!(rate > 0 && rate < 1))
    throw new ManyworldsError(
      'CONFIG_INVALID',
      `the rate to pass must be a number above 0 and below 1, such as 0.9, it is ${rate}. A rate of 1 cannot be shown with any number of tasks`,
    )
  if (!(maxUngraded >= 0 && maxUngraded <= 1))
    throw new ManyworldsError('CONFIG_INVALID', `\`maxUngraded\` must be a number from 0 to 1, it is ${maxUngraded}`)
  const { success, successAtLeast, solved, unsolved, withoutResult, rollouts } = summary
  if (!success || successAtLeast === null)
    return {
      passed: false,
      lines: [`cannot show a success rate of ${rateText(rate)}: no rollout has a result`, ...apart(summary)],
    }
  const tooMany = withoutResult > maxUngraded * rollouts
  const isShown = successAtLeast >= rate
  const confidence = confidenceText(success.confidence)
  const missing = `${withoutResult} of ${counted(rollouts, 'rollout')} ${withoutResult === 1 ? 'has' : 'have'} no result, more than ${rateText(maxUngraded)} (maxUngraded): the others may not be like all`
  const first = isShown
    ? `at least ${rateText(rate)} of tasks are solved, with ${confidence} confidence`
    : `expected at least ${rateText(rate)} of tasks to be solved, with ${confidence} confidence; the results show at least ${outwards(100 * successAtLeast, -1, 1)} %`
  const counts = `solved ${solved} of ${counted(solved + unsolved, 'rollout')} of ${describeTasks(summary)}: ${describeRate(success)}`
  return {
    passed: isShown && !tooMany,
    lines: [
      ...(tooMany ? [missing] : []),
      // What the others show must not read like a success.
      ...(tooMany && isShown ? [] : [first]),
      counts,
      ...unsolvedLine(summary.unsolvedTasks),
      ...apart(summary),
      ...(isShown ? [] : neededLine(rate, success.tasks, success.confidence)),
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

/** The rollouts that do not count: how many, why, and of which tasks. */
function apart({ withoutResult, failures, ungradedTasks }: EvaluationSummary): string[] {
  if (withoutResult === 0) return []
  const reasons = Object.entries(failures.infrastructure)
    .map(([code, count]) => `${count} ${code}`)
    .join(', ')
  const shown = ungradedTasks.slice(0, MAX_TASKS_SHOWN).map(({ id }) => oneLine(id))
  const more = ungradedTasks.length - shown.length
  const which = `${shown.join(', ')}${more > 0 ? ` and ${more} more` : ''}`
  return [`not counted: ${counted(withoutResult, 'rollout')} without a result: ${reasons}; of ${which}`]
}

function neededLine(rate: number, tasks: number, confidence: number): string[] {
  const needed = tasksNeeded(rate, confidence)
  if (tasks >= needed) return []
  return [
    `${counted(tasks, 'task')} cannot show this even if all are solved: at least ${counted(needed, 'task')} are needed`,
  ]
}

/** How many tasks are needed, if all are solved, to show a success rate of at least `rate`. */
export const tasksNeeded = (rate: number, confidence: number): number =>
  Math.ceil(Math.log(1 - confidence) / Math.log(rate))
