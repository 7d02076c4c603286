import { existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { defineAgent } from 'manyworlds'

/** Records what the viewer shows: steps, logs, sub-tasks, failures. */
export const shown = defineAgent({
  name: 'shown',
  run: async (input: { readonly text: string; readonly log?: string; readonly fail?: string }, ctx) => {
    if (input.log !== undefined) console.log(input.log)
    ctx.step({ text: `first: ${input.text}`, usage: { inputTokens: 10, outputTokens: 2 } })
    ctx.step({ action: input.text, observation: { seen: input.text }, reward: 0.5 })
    if (input.fail !== undefined) throw new Error(input.fail)
    return { said: input.text }
  },
})

/** Records a step, and waits until a file exists: a test says when it has seen enough. */
export const waitingFor = defineAgent({
  name: 'waiting-for',
  run: async (file: string, ctx) => {
    ctx.step({ text: 'waiting' })
    while (!existsSync(file)) await sleep(50, undefined, { signal: ctx.signal })
    return 'done'
  },
})

/** Records a step, and waits until it is stopped. */
export const waiting = defineAgent({
  name: 'waiting',
  run: async (ms: number, ctx) => {
    ctx.step({ text: 'waiting' })
    await sleep(ms, undefined, { signal: ctx.signal })
    return ms
  },
})

/** Kills its worker at the first attempt. */
export const killer = defineAgent({
  name: 'killer',
  run: async (_input: null, ctx) => {
    ctx.step({ text: 'about to die' })
    await sleep(400)
    if (ctx.attempt === 1) process.kill(process.pid, 'SIGKILL')
    return 'survived'
  },
})
