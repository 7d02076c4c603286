import { MOST_STEPS } from '../trajectory/step.ts'

/**
 * The keys of rows. A store holds many runs, and each run numbers its own rows, so a key is the number of the run times
 * `RUN_SPAN`, and the run's own number: rows of a run lie together, and drivers that write different runs need not agree
 * on numbers. A file of one run has the run number 0, so there the keys are the run's own numbers.
 */
export const RUN_SPAN = 2 ** 31
/** Keys must be exact as JavaScript numbers. */
export const MOST_RUNS = 2 ** 22

/** Steps of one start lie together in the same way. */
export const STEP_SPAN = MOST_STEPS

/** How the id of a run begins that is being removed. No id of a run has a bracket or a space. */
export const REMOVED = '(removed) '

export const keyOf = (run: number, number: number): number => run * RUN_SPAN + number
export const numberOf = (key: number): number => key % RUN_SPAN
