import { defineAgent } from 'manyworlds'

/** The agents of the benchmarks. */
export const noop = defineAgent({ name: 'noop', run: (input: { id: number; text: string }) => input.id })
export const pause = defineAgent({
  name: 'pause',
  run: (ms: number) => new Promise<number>((resolve) => setTimeout(resolve, ms, ms)),
})
