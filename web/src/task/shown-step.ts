import { isWellFormed } from '../../../src/trajectory/shapes.ts'
import type { Step } from '../../../src/trajectory/step.ts'
import type { StepLine } from '../../../src/view/api.ts'
import { readShown } from './shown-value.ts'

/** A step as the page shows it. */
export interface ShownStep {
  readonly step: Step
  /** The step as it was received, in lossless JSON. */
  readonly raw: unknown
  /** A store may contain steps that this package did not record; only their raw form is shown. */
  readonly isWellFormed: boolean
  /** The number of characters that were left out. */
  readonly cut: number
  readonly tokenTexts: readonly string[] | undefined
}

export function shownStep({ step: raw, cut = 0, tokenTexts }: StepLine): ShownStep {
  const step = readShown(raw) as Step
  return { step, raw, isWellFormed: isWellFormed(step), cut, tokenTexts }
}
