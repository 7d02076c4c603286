import type { SweepSummary } from '../sweep/summary.ts'

/**
 * What a script can export for `manyworlds train`. The symbol is global, because the script may load another copy of
 * this package.
 */
export const TRAINABLE: unique symbol = Symbol.for('manyworlds.trainable') as never

export interface Trainable {
  readonly [TRAINABLE]: {
    /** Trains to the end. A sweep resolves to its summary. */
    train(): Promise<SweepSummary | undefined>
  }
}

export function trainableOf(value: unknown): Trainable[typeof TRAINABLE] | undefined {
  if (typeof value !== 'object' || value === null || !(TRAINABLE in value)) return undefined
  return (value as Trainable)[TRAINABLE]
}
