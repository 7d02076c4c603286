import { MOST_STEPS } from '../trajectory/step.ts'

/**
 * Keys of rows. Each run numbers its own rows, and a key is run × RUN_SPAN + number. So the rows of a run are contiguous,
 * and drivers that write different runs need no common counter. The run of a single-run file has the number 0, so its keys
 * are plain numbers.
 */
export const RUN_SPAN = 2 ** 31
/** With more runs, keys would not be exact as JavaScript numbers. */
export const MOST_RUNS = 2 ** 22

/** The key of a step is start × STEP_SPAN + index. */
export const STEP_SPAN = MOST_STEPS

export const MOST_STARTS = 2 ** 33

/** Prefix of the id of a run that is being removed. Ids given by users contain no parentheses or spaces. */
export const REMOVED = '(removed) '

export const keyOf = (run: number, number: number): number => run * RUN_SPAN + number
export const numberOf = (key: number): number => key % RUN_SPAN
