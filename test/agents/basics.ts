import { defineAgent } from 'manyworlds'

/** Answers what it was given. */
export const echo = defineAgent({ name: 'echo', run: async (input: unknown) => input })

/** Answers late: tells after how many milliseconds, and stops when it is told to. */
export const sleeper = defineAgent({
  name: 'sleeper',
  run: (ms: number, ctx) =>
    new Promise<number>((resolve, reject) => {
      const timer = setTimeout(() => resolve(ms), ms)
      ctx.signal.addEventListener('abort', () => {
        clearTimeout(timer)
        reject(ctx.signal.reason)
      })
    }),
})

/** Says in which process it ran. */
export const where = defineAgent({ name: 'where', run: async (_input: unknown) => process.pid })

/** Answers its style, unless its input is that style. */
export const stylist = defineAgent({
  name: 'stylist',
  params: { style: 'a', instructions: '' },
  run: async (input: string, { params }) => {
    if (input === params.style) throw new Error(`not in style ${params.style}`)
    return params.style
  },
})
