import { expect } from 'vitest'
import { ManyworldsError } from '../errors.ts'
import { outcomeOf, type ResponseLike } from '../grade/outcome.ts'
import { type EvaluationSummary, summarizeOutcomes } from '../grade/summarize.ts'
import { atLeast, type ThresholdOptions } from '../grade/threshold.ts'

/** A matcher for Vitest: `import 'manyworlds/vitest'`. */

export interface PassOptions extends ThresholdOptions {
  /** Default 0.95. */
  readonly confidence?: number
}

/** What can be judged: the result of `runTask`, a list of responses, or a summary of them. */
export type Judged = ReadonlyMap<string, ResponseLike> | Iterable<ResponseLike> | EvaluationSummary

interface PassMatchers<R = unknown> {
  /**
   * Passes if the responses show, with the given confidence, that at least this share of all such tasks is solved. Few tasks show
   * little: a rate of 0.9 needs 29 tasks, all solved. Fails if more than `maxUngraded` (default 2 %) of the rollouts have no result.
   */
  toPassAtLeast(rate: number, options?: PassOptions): R
}

declare module 'vitest' {
  interface Matchers<R, T> extends PassMatchers<R> {}
}

export function toPassAtLeast(received: unknown, rate: number, options: PassOptions = {}) {
  const summary = summaryOf(received, options)
  if (!summary.success)
    throw new ManyworldsError('CONFIG_INVALID', `toPassAtLeast: ${atLeast(summary, rate, options).lines.join('\n')}`)
  const { passed, lines } = atLeast(summary, rate, options)
  return { pass: passed, message: () => lines.join('\n') }
}

function summaryOf(received: unknown, options: PassOptions): EvaluationSummary {
  if (isSummary(received)) {
    const made = received.success?.confidence
    if (options.confidence !== undefined && made !== undefined && made !== options.confidence)
      throw new ManyworldsError(
        'CONFIG_INVALID',
        `toPassAtLeast: the summary has a confidence of ${made}; pass the responses to use ${options.confidence}`,
      )
    return received
  }
  const list = received instanceof Map ? [...received.values()] : listOf(received)
  const wrong = list?.findIndex((item) => !isResponse(item)) ?? 0
  if (!list || wrong >= 0)
    throw new ManyworldsError(
      'CONFIG_INVALID',
      `toPassAtLeast: give the responses of runTask or a summary of them${list ? `; item ${wrong} is not a response` : ''}`,
    )
  return summarizeOutcomes((list as ResponseLike[]).map(outcomeOf), options)
}

function listOf(received: unknown): unknown[] | undefined {
  const iterable = typeof received === 'object' && received !== null && Symbol.iterator in received
  return iterable ? [...(received as Iterable<unknown>)] : undefined
}

const isResponse = (value: unknown): value is ResponseLike =>
  typeof value === 'object' && value !== null && 'id' in value && 'status' in value

const isSummary = (value: unknown): value is EvaluationSummary =>
  typeof value === 'object' &&
  value !== null &&
  'success' in value &&
  'unsolvedTasks' in value &&
  'withoutResult' in value

expect.extend({ toPassAtLeast })
