import type { SweepSummary } from '../sweep/summary.ts'

/** What a script can export for `manyworlds train`. The symbol is a global one: the script may bring another copy of this package. */
export const TRAINABLE: unique symbol = Symbol.for('manyworlds.trainable') as never

export interface Trainable {
  readonly [TRAINABLE]: {
    /** Trains to the end. Of a sweep, what it came to. */
    train(): Promise<SweepSummary | undefined>
  }
}

export function trainableOf(value: unknown): Trainable[typeof TRAINABLE] | undefined {
  if (typeof value !== 'object' || value === null || !(TRAINABLE in value)) return undefined
  return (value as Trainable)[TRAINABLE]
}
