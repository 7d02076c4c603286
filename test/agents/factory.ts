import { defineAgent } from 'manyworlds'

/** Agents are made where this is called, and are of this module all the same. */
export const makeAdder = (by: number) =>
  defineAgent({ name: `add-${by}`, params: { by }, run: async (input: number, ctx) => input + ctx.params.by })
