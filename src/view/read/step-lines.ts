import { ManyworldsError } from '../../errors.ts'
import type { PagedRun } from '../../store/paged/paged-run.ts'
import { taskNumber } from '../../store/paged/task-record.ts'
import type { Step } from '../../trajectory/step.ts'
import type { StepLine } from '../api.ts'
import { attemptSteps } from './attempt-steps.ts'
import { cutJson, MOST_CHARS } from './cut-texts.ts'
import { noTask } from './task-details.ts'
import { tokenTexts } from './token-texts.ts'

export interface StepsAsked {
  readonly task: string
  /** See `attempt-steps.ts`. */
  readonly start: number
  readonly from: number
}

/** Streams the steps of an attempt. Long texts are cut. */
export async function* stepLines(run: PagedRun, asked: StepsAsked, signal: AbortSignal): AsyncGenerator<StepLine> {
  for await (const step of stepsOf(run, asked)) {
    signal.throwIfAborted()
    if (step.index >= asked.from) yield lineOf(step, MOST_CHARS)
  }
}

/** One step with complete texts. */
export async function wholeStep(run: PagedRun, asked: StepsAsked, signal: AbortSignal): Promise<StepLine> {
  for await (const step of stepsOf(run, asked)) {
    signal.throwIfAborted()
    if (step.index === asked.from) return lineOf(step, Number.POSITIVE_INFINITY)
  }
  throw new ManyworldsError('TASK_NOT_FOUND', `the attempt has no step ${asked.from}`)
}

function stepsOf(run: PagedRun, { task, start }: StepsAsked): AsyncIterable<Step> {
  const number = taskNumber(run, task)
  if (number === undefined) throw noTask(run, task)
  const steps = attemptSteps(run, number, start)
  if (steps === undefined) throw new ManyworldsError('TASK_NOT_FOUND', 'the task has no such attempt')
  return steps
}

function lineOf(step: Step, most: number): StepLine {
  const { json, cut } = cutJson(step, most)
  const texts = step.kind === 'model' ? tokenTexts(step) : undefined
  return { step: json as never, ...(cut > 0 && { cut }), ...(texts && { tokenTexts: texts }) }
}
