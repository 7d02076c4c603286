import { setTimeout as sleep } from 'node:timers/promises'
import { defineAgent } from 'manyworlds'
import type { StepContent } from '../../src/trajectory/step.ts'

interface Recorded {
  readonly steps: number
  readonly ms?: number
  readonly chars?: number
  /** Awaits each step. */
  readonly waits?: boolean
}

/** Records steps, one after the other. */
export const recorder = defineAgent({
  name: 'recorder',
  run: async ({ steps, ms = 0, chars = 0, waits = false }: Recorded, ctx) => {
    for (let i = 0; i < steps; i++) {
      const recorded = ctx.step({ action: i, reward: i / 2, text: noise(chars) })
      if (waits) await recorded
      if (ms > 0) await sleep(ms, undefined, { signal: ctx.signal })
    }
    return steps
  },
})

/** Under this, a context takes steps of every kind from this package. */
const RECORD = Symbol.for('manyworlds.record')

/** Records steps as a model with tools in an environment has them. */
export const everyKind = defineAgent({
  name: 'every-kind',
  run: async (steps: readonly StepContent[], ctx) => {
    const record = (ctx as unknown as Record<symbol, (step: StepContent) => Promise<void>>)[RECORD]!.bind(ctx)
    for (const step of steps) await record(step)
    return steps.length
  },
})

/** Records nothing, and takes its time. */
export const sleeper = defineAgent({
  name: 'sleeper',
  run: async (ms: number, ctx) => {
    await sleep(ms, undefined, { signal: ctx.signal })
    return ms
  },
})

const noise = (chars: number) => {
  let text = ''
  while (text.length < chars) text += Math.random().toString(36).slice(2)
  return text.slice(0, chars)
}

/** A conversation in English, more or less: the steps of a language model. */
export const talker = defineAgent({
  name: 'talker',
  run: async ({ turns, chars, tools }: { turns: number; chars: number; tools: boolean }, ctx) => {
    const messages: { role: string; content: string }[] = []
    for (let turn = 0; turn < turns; turn++) {
      messages.push({ role: 'user', content: sentence(ctx.random, chars) })
      messages.push({ role: 'assistant', content: sentence(ctx.random, chars) })
      // What a model with tools has besides: lists that are the same, and lists that are new, in each step.
      const calls = [
        { id: `call-${turn}`, name: 'search', arguments: JSON.stringify({ query: sentence(ctx.random, 90) }) },
      ]
      const pages = [1, 2, 3].map((page) => ({ page, text: sentence(ctx.random, 60) }))
      const request = { messages: [...messages], ...(tools ? { tools: TOOLS } : {}) }
      const rest = tools ? { observation: pages, data: { request, calls } } : { data: { request } }
      ctx.step({ ...rest, reward: turn, usage: { inputTokens: 10 * turn } })
    }
    return messages.length
  },
})

const TOOLS = [{ name: 'search', description: 'Searches for pages about something. '.repeat(8) }]

const WORDS =
  'the model answers that a search for it has found three pages and none of them is about what was asked so it should look again elsewhere before it gives up'.split(
    ' ',
  )

function sentence(random: () => number, chars: number): string {
  let text = ''
  while (text.length < chars) text += `${WORDS[Math.floor(random() * WORDS.length)]} `
  return text.slice(0, chars)
}
