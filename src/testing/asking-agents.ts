import { spawnSync } from 'node:child_process'
import type { AskOptions } from '../agent.ts'
import { MAX_OPEN_REQUESTS } from '../protocol/messages.ts'
import { askAside } from '../worker/side-ask.ts'
import { defineIn } from './define.ts'

/** Agents of the conformance kit that call services of the driver. */
const define = defineIn(import.meta.url)

/** Calls a service, and returns its answer or its error. */
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

/** After this many of its requests, `asksAll` reports that they have arrived. */
export const QUEUED_REQUESTS: number = MAX_OPEN_REQUESTS / 2

/**
 * Makes many requests at once, more than may be open. `together`: waits for the other tasks first, and calls `queued` after its
 * first requests. Requests arrive in order, so when `queued` is called, they wait in the driver.
 */
export const asksAll = define(
  'asks-all',
  async ({ service, count, together }: { service: string; count: number; together?: boolean }, ctx) => {
    if (together) await ctx.ask('together')
    const first = Array.from({ length: Math.min(count, QUEUED_REQUESTS) }, (_, i) => ctx.ask<number>(service, i))
    const queued = together ? ctx.ask('queued') : undefined
    const rest = Array.from({ length: count - first.length }, (_, i) => ctx.ask<number>(service, first.length + i))
    await queued
    return Promise.all([...first, ...rest])
  },
)

/** Reads the parts of a stream: all, or the first few. */
export const takesParts = define('takes-parts', async ({ parts, most }: { parts: number; most?: number }, ctx) => {
  let count = 0
  let inOrder = true
  for await (const part of ctx.askStream<number>('count', parts)) {
    if (part !== count) inOrder = false
    if (++count === most) break
  }
  return { count, inOrder }
})

/** Kills its worker while requests and a stream are open. */
export const crashesWaiting = define('crashes-waiting', async (requests: number, ctx) => {
  for (let i = 0; i < requests; i++) ctx.ask('never', i).catch(() => {})
  for await (const _ of ctx.askStream('allOpen', requests)) process.kill(process.pid, 'SIGKILL')
})

/** Ends while requests are open. */
export const leaves = define('leaves', async (_: null, ctx) => {
  for (let i = 0; i < 10; i++) ctx.ask('never', i).catch(() => {})
  await ctx.ask('hello')
  return 'left'
})

/** Aborts a request, and then asks how many are open. */
export const takesBack = define('takes-back', async (_: null, ctx) => {
  const controller = new AbortController()
  const taken = ctx.ask('never', 0, { signal: controller.signal }).catch((error: Error) => error.message)
  await ctx.ask('hello')
  controller.abort(new Error('enough'))
  return { reason: await taken, waiting: await ctx.ask<number>('hello') }
})

/** Makes a request from the side thread while it blocks its event loop with a child process. */
export const asksAside = define('asks-aside', async (ms: number, ctx) => {
  const { flag, answer } = askAside(ctx, 'time', null)
  spawnSync(process.execPath, ['-e', `setTimeout(() => {}, ${ms})`])
  const whileBlocked = Atomics.load(flag, 0) === 1
  return { answer: await answer, whileBlocked }
})

/** Requests bills, one after the other. */
export const billed = define('billed', async ({ name, bills }: { name: string; bills: number }, ctx) => {
  const answers: string[] = []
  for (let i = 0; i < bills; i++) answers.push(await ctx.ask<string>('bill', `${name}/${i}`))
  return answers
})

/** Calls a model of the run. */
export const asksModel = define('asks-model', async (prompt: string, ctx) => {
  const { text } = await ctx.generate({ model: 'echo', prompt })
  return text
})
