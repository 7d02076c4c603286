import { defineAgent } from 'manyworlds'

/** Draws from several streams; with `noisy`, more from one of them than it answers with. */
export const drawer = defineAgent({
  name: 'drawer',
  run: async ({ noisy = false, fails = 0 }: { noisy?: boolean; fails?: number }, ctx) => {
    const { random, randomStream } = ctx
    const latency = randomStream('latency')
    if (noisy) for (let draw = 0; draw < 100; draw++) latency()
    const numbers = [random(), ctx.random()]
    const [first, second] = [randomStream('choice')(), ctx.randomStream('choice')()]
    if (ctx.attempt <= fails) throw new Error('not yet')
    return { numbers, choice: [first, second], goesOn: randomStream('choice') === ctx.randomStream('choice') }
  },
})

/** Says what becomes of a name that is none. */
export const misnamer = defineAgent({
  name: 'misnamer',
  run: async (name: unknown, ctx) => ctx.randomStream(name as string)(),
})
