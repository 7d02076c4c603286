/**
 * On the `run` of an agent: the models that it will call, by its params. They are looked for before anything starts. By a symbol that
 * two copies of this package share.
 */
export const MODELS_USED: unique symbol = Symbol.for('manyworlds.models-used')

export type ModelsUsed = (params: unknown) => readonly string[]
