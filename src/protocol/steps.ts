import { deserialize } from 'node:v8'
import type { Step } from '../trajectory.ts'
import { isExactJson, packBytes } from './pack.ts'

/**
 * A recorded step on its way: its JSON or, where that would not bring it back, the bytes of v8. Text, because the run
 * file wants it as text too: it is written once, in the worker, and read once.
 */
export type PackedStep = string | Uint8Array

export const packStep = (step: Step): PackedStep => (isExactJson(step) ? JSON.stringify(step) : packBytes(step))

/** The whole list as one JSON text; undefined if a step is not JSON. */
export function stepsText(steps: readonly PackedStep[]): string | undefined {
  for (const step of steps) if (typeof step !== 'string') return undefined
  return `[${steps.join(',')}]`
}

export const unpackSteps = (steps: readonly PackedStep[]): Step[] =>
  steps.map((step) => (typeof step === 'string' ? JSON.parse(step) : deserialize(step)) as Step)
