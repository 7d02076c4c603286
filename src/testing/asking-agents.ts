import { spawnSync } from 'node:child_process'
import type { AskOptions } from '../agent.ts'
import { askAside } from '../worker/side-ask.ts'
import { defineIn } from './define.ts'

/** Agents of the conformance kit that ask services of the driver. */
const define = defineIn(import.meta.url)

/** Asks a service, and answers with what it says or with its error. */
export const asksFor = define(
  'asks-for',
  async ({ service, question, options }: { service: string; question?: unknown; options?: AskOptions }, ctx) => {
    try {
      return await ctx.ask(service, question, options)
    } catch (error) {
      const { code, message } = error as { code?: string; message: string }
      return { code, message }
    }
  },
)

/** Asks for many things at once, more than may be open; with others, when all of them are there. */
export const asksAll = define(
  'asks-all',
  async ({ service, count, together }: { service: string; count: number; together?: boolean }, ctx) => {
    if (together) await ctx.ask('together')
    return Promise.all(Array.from({ length: count }, (_, i) => ctx.ask<number>(service, i)))
  },
)

/** Takes parts of a stream, all of them or the first few. */
export const takesParts = define('takes-parts', async ({ parts, most }: { parts: number; most?: number }, ctx) => {
  let count = 0
  let inOrder = true
  for await (const part of ctx.askStream<number>('count', parts)) {
    if (part !== count) inOrder = false
    if (++count === most) break
  }
  return { count, inOrder }
})

/** Kills its worker while it waits for so many answers, and for the rest of a stream. */
export const crashesWaiting = define('crashes-waiting', async (requests: number, ctx) => {
  for (let i = 0; i < requests; i++) ctx.ask('never', i).catch(() => {})
  for await (const _ of ctx.askStream('allOpen', requests)) process.kill(process.pid, 'SIGKILL')
})

/** Ends while it waits. */
export const leaves = define('leaves', async (_: null, ctx) => {
  for (let i = 0; i < 10; i++) ctx.ask('never', i).catch(() => {})
  await ctx.ask('hello')
  return 'left'
})

/** Takes a request back, and asks how many are open then. */
export const takesBack = define('takes-back', async (_: null, ctx) => {
  const controller = new AbortController()
  const taken = ctx.ask('never', 0, { signal: controller.signal }).catch((error: Error) => error.message)
  await ctx.ask('hello')
  controller.abort(new Error('enough'))
  return { reason: await taken, waiting: await ctx.ask<number>('hello') }
})

/** Asks from beside its event loop, which it then blocks with a process that it waits for. */
export const asksAside = define('asks-aside', async (ms: number, ctx) => {
  const { flag, answer } = askAside(ctx, 'time', null)
  spawnSync(process.execPath, ['-e', `setTimeout(() => {}, ${ms})`])
  const whileBlocked = Atomics.load(flag, 0) === 1
  return { answer: await answer, whileBlocked }
})

/** Asks for bills, one after the other. */
export const billed = define('billed', async ({ name, bills }: { name: string; bills: number }, ctx) => {
  const answers: string[] = []
  for (let i = 0; i < bills; i++) answers.push(await ctx.ask<string>('bill', `${name}/${i}`))
  return answers
})

/** Asks a model of the run. */
export const asksModel = define('asks-model', async (prompt: string, ctx) => {
  const { text } = await ctx.generate({ model: 'echo', prompt })
  return text
})
