import { defineAgent } from 'manyworlds'

/** The agents of the benchmarks. */
export const noop = defineAgent({ name: 'noop', run: (input: { id: number; text: string }) => input.id })
export const pause = defineAgent({
  name: 'pause',
  run: (ms: number) => new Promise<number>((resolve) => setTimeout(resolve, ms, ms)),
})
/** Five turns of looking and finding, a hundred or so characters each. */
export const fiveSteps = defineAgent({
  name: 'five-steps',
  run: (input: { id: number; question: string }, ctx) => {
    for (let turn = 0; turn < 5; turn++)
      ctx.step({
        action: { tool: 'search', query: `${input.question} (page ${turn} of task ${input.id})` },
        observation: `result ${turn}: something that was found on page ${turn} for task ${input.id}`,
        reward: turn / 4,
      })
    return { id: input.id, text: `the answer to ${input.question}` }
  },
})
/** Takes so long on a node of speed 1; a node's speed is what its environment says. */
export const paced = defineAgent({
  name: 'paced',
  run: (ms: number) => new Promise<number>((resolve) => setTimeout(resolve, ms / Number(process.env.BENCH_SPEED), ms)),
})
/** Answers with the time at which it was done. */
export const finishing = defineAgent({
  name: 'finishing',
  run: async (ms: number) => {
    await new Promise((resolve) => setTimeout(resolve, ms))
    return Date.now()
  },
})
/** A conversation: every step has all messages so far, as calls of a model have. */
export const chat = defineAgent({
  name: 'chat',
  run: async ({ turns }: { turns: number; seed: number }, ctx) => {
    const messages: { role: string; content: string }[] = []
    for (let turn = 0; turn < turns; turn++) {
      const words = Array.from({ length: 40 }, () => WORDS[Math.floor(ctx.random() * WORDS.length)])
      messages.push({ role: turn % 2 === 0 ? 'user' : 'assistant', content: words.join(' ') })
      await ctx.step({ action: { messages: [...messages] }, reward: turn / turns })
    }
    return messages.length
  },
})
const WORDS =
  'the model answers that a search for it has found three pages and none of them is about what was asked so it should look again elsewhere before it gives up'.split(
    ' ',
  )
/** Records so many steps of so many characters that cannot be compressed. */
export const heavy = defineAgent({
  name: 'heavy',
  run: async ({ steps, chars, ms }: { id: number; steps: number; chars: number; ms: number }, ctx) => {
    for (let i = 0; i < steps; i++) {
      await ctx.step({ text: noise.slice(i, i + chars) })
      if (ms > 0) await new Promise((resolve) => setTimeout(resolve, ms))
    }
    return steps
  },
})
const noise = Array.from({ length: 10_000 }, () => Math.random().toString(36).slice(2)).join('')

/** Asks a service of the driver so many times, so many at once; answers with how long each took, in microseconds. */
export const requester = defineAgent({
  name: 'requester',
  run: async ({ requests, atOnce }: { requests: number; atOnce: number }, ctx) => {
    const tookUs: number[] = []
    let left = requests
    const one = async () => {
      while (left-- > 0) {
        const began = performance.now()
        await ctx.ask('echo', 'x'.repeat(100))
        tookUs.push(Math.round((performance.now() - began) * 1000))
      }
    }
    await Promise.all(Array.from({ length: atOnce }, one))
    return tookUs
  },
})

/** Loads a blob, says so, and waits until the others have said so. */
export const loader = defineAgent({
  name: 'loader',
  run: async (name: string, ctx) => {
    const { byteLength } = await ctx.blob(name)
    await ctx.ask('have')
    return byteLength
  },
})
