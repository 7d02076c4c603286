import { defineAgent } from 'manyworlds'

interface Input {
  readonly id: number
}

export const noop = defineAgent({ name: 'noop', run: (input: Input) => input.id })

export const echo = defineAgent({
  name: 'echo',
  run: (input: Input & { readonly records: readonly unknown[] }) => input,
})

export const sleep = defineAgent({
  name: 'sleep',
  run: (input: Input) => new Promise<number>((resolve) => setTimeout(resolve, 20, input.id)),
})
