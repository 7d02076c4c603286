/**
 * A property of an agent's `run` function: returns the models it will call, given its params, so that they can be
 * checked before anything starts. A global symbol, because there may be two copies of this package.
 */
export const MODELS_USED: unique symbol = Symbol.for('manyworlds.models-used')

export type ModelsUsed = (params: unknown) => readonly string[]
